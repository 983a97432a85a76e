/** C is printed alone: what a compiler of this machine makes of it computes what the reference does. */
import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { memoryOf } from '../../src/api/stages/stage-check.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { emit, TARGETS } from '../../src/backends/targets/index.ts'
import { load } from '../../src/node.ts'
import { checkedPlan } from '../../src/plan/launch-plan.ts'
import { type RefResult, reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { checkFacts } from '../../src/run/compile/device-limits.ts'
import { decoder, type Tensor } from '../../src/storage/tensor.ts'
import { compare } from '../properties/agree.ts'
import { caseOf, numbers } from '../properties/property-cases.ts'
import { compilerOfC, type PlanOnArrays, runAsC } from '../support/c-program.ts'
import { runs, SEED, sample } from '../support/cases.ts'
import { rotations, unlessSkipped } from '../support/compared.ts'
import { standard } from '../support/packaged-formats.ts'

interface Checked extends PlanOnArrays {
  readonly check: () => void
}

/** Nothing where the target refuses the plan: instructions without a text, for example. */
function allowed<T>(make: () => T): T | undefined {
  const made = resultOrError(make)
  return made instanceof SptError ? undefined : made
}

/** All of them as one program, with its pragmas and without. */
function runAll(cases: readonly Checked[], options: readonly string[]): void {
  const fresh = cases.map((c) => ({ ...c, memory: new Map(c.memory) }))
  runAsC(fresh, options)
  fresh.forEach((c, k) => {
    for (const [name, cells] of c.memory) cases[k]!.memory.set(name, cells)
    cases[k]!.check()
  })
}

test.skipIf(!compilerOfC)('generated programs under schedules of all kinds', () => {
  const cases: Checked[] = []
  const possible = (choices: readonly number[]) => {
    const k = unlessSkipped(() => caseOf(choices, 6))
    const plan =
      k &&
      allowed(() => {
        const made = k.compilation.planFor(TARGETS.c.lowering)
        emit(made, 'c')
        return made
      })
    return k && plan ? [{ k, plan }] : []
  }
  for (const choices of fc.sample(numbers, { numRuns: runs(12), seed: SEED })) {
    const [first] = rotations(choices).flatMap(possible)
    if (!first) continue
    const { k, plan } = first
    const memory = memoryOf(plan.buffers, k.bound)
    const check = (): void => {
      try {
        compare('c', k.bound, memory, k.expected)
      } catch (e) {
        const text = emit(plan, 'c').map((m) => m.text)
        throw new Error(`${(e as Error).message}\n${k.sample.text}\n${k.scheduled.trace.join('\n')}\n${text}`)
      }
    }
    cases.push({ plan, params: k.bound.params, memory, check })
  }
  expect(cases.length).toBeGreaterThanOrEqual(runs(12) / 2)
  runAll(cases, ['-fopenmp'])
})

/** Within what the reference allows. */
function within(what: string, got: Tensor, want: RefResult): void {
  const read = decoder(got.dtype)
  const values = Array.from(got.values!, (x) => (read ? read(x) : x))
  const wrong = values.findIndex((x, k) => {
    const error = want.errors[k]!
    return !(
      error === Infinity ||
      Object.is(x + 0, want.values[k]! + 0) ||
      Math.abs(x - want.values[k]!) <= error
    )
  })
  if (values.length !== want.values.length || wrong >= 0)
    throw new Error(
      `${what}[${wrong}] is ${values[wrong]}, the reference has ${want.values[wrong]} ± ${want.errors[wrong]}`,
    )
}

/** Others need sizes of their own, or instructions: some files have no plan that C takes. */
const ALWAYS = 'softmax.spt'

test.skipIf(!compilerOfC)('packaged kernels under their schedules', async () => {
  const folder = new URL('../../kernels/', import.meta.url)
  const cases: Checked[] = []
  const others = readdirSync(folder).filter((f) => f.endsWith('.spt') && f !== ALWAYS)
  for (const file of [ALWAYS, ...sample(others, 1)]) {
    const program = await load(new URL(file, folder))
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      const names = kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required))
      // gcc takes up to a second for each schedule.
      for (const s of sample(['', ...names], 6)) {
        const made = allowed(() => {
          const c = (s ? kernel.schedule(s) : kernel.parallel()).compilation
          const params = Object.fromEntries(c.kernel.params.map((p) => [p.name, p.kind === 'size' ? 16 : 1]))
          const bound = bindInputs(c.kernel, { params, seed: SEED })
          const plan = c.planFor(TARGETS.c.lowering)
          emit(plan, 'c')
          checkFacts(checkedPlan(plan), bound.params)
          const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
          return { bound, plan, expected, memory: memoryOf(plan.buffers, bound) }
        })
        if (!made) continue
        const { bound, plan, memory, expected } = made
        const check = (): void => compare(`${file} ${name}.${s}`, bound, memory, expected, within)
        cases.push({ plan, params: bound.params, memory, check })
      }
    }
  }
  expect(cases.length).toBeGreaterThan(0)
  runAll(cases, ['-fopenmp'])
})

/** Loops over levels and searches in them; a dense level below a sparse one as a temporary. */
const LEVELS = `${standard('banded', 'coo')}kernel below(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(j, d)
  buffer A: i32[i, j] in
  buffer Y: i32[i, j, f] local
  buffer y: i32[i] out
  iterate s [i, j, f] as SSS { Y[i, j, f] = A[i, j] * (f + 1) }
  iterate t [i, j, f] as SRR { y[i] += Y[i, j, f] }
}
kernel runs(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = run(i, n)
  axis k = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer B: i32[i, k] in
  buffer y: i32[i] out
  buffer z: i32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] * j }
  iterate t [i, k] as SR { z[i] += B[i, k] * A[i, k] }
}
kernel elements(m: size, n: size) {
  axis i = sparse_variable(m)
  axis j = singleton(i, n)
  axis r = dense_fixed(m)
  axis k = sparse_variable(r, n)
  buffer A: i32[i, j] in
  buffer B: i32[r, k] in
  buffer y: i32[r] out
  buffer z: i32[r] out
  iterate s [i, j] as RR { y[i] += A[i, j] * j }
  iterate t [r, k] as SR { z[r] += B[r, k] * A[r, k] }
}
kernel stored(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer y: i32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] * j }
}
schedule stored.banded { A as banded }
schedule stored.coo { A as coo }
`

test.skipIf(!compilerOfC)('levels of all kinds', () => {
  const program = parseProgram(LEVELS)
  const cases = program.kernels.flatMap((name) =>
    ['', ...program.kernel(name).schedules].map((s) => {
      const kernel = program.kernel(name)
      const c = (s ? kernel.schedule(s) : kernel).compilation
      const params = Object.fromEntries(c.kernel.params.map((p) => [p.name, 9]))
      const bound = bindInputs(c.kernel, { params, seed: SEED })
      const plan = c.planFor(TARGETS.c.lowering)
      const memory = memoryOf(plan.buffers, bound)
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      const check = (): void => compare(`${name}.${s}`, bound, memory, expected)
      return { plan, params: bound.params, memory, check }
    }),
  )
  expect(cases).toHaveLength(6)
  runAll(cases, ['-fopenmp'])
})

if (!compilerOfC) console.log('skipped: compiling C: there is no cc, gcc or clang')
