/** Emitted C leaves nothing undefined: compiled with the undefined-behaviour sanitizer, programs run clean under every schedule. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { memoryOf } from '../../src/api/stages/stage-check.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { emit, TARGETS } from '../../src/backends/targets/index.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { compare } from '../properties/agree.ts'
import { compilerOfC, type PlanOnArrays, runAsC } from '../support/c-program.ts'
import { runs, SEED } from '../support/cases.ts'

/** Drawn expressions compare values with themselves, which compilers warn of. */
const SANITIZER = ['-fsanitize=undefined', '-fno-sanitize-recover=all', '-w']

/** Whether the compiler of this machine links programs with the sanitizer. */
function hasSanitizer(): boolean {
  if (!compilerOfC) return false
  const folder = mkdtempSync(join(tmpdir(), 'spt-ub-'))
  try {
    writeFileSync(join(folder, 'empty.c'), 'int main(void) { return 0; }\n')
    const made = spawnSync(compilerOfC, [...SANITIZER, 'empty.c', '-o', 'empty'], { cwd: folder })
    return made.status === 0 && spawnSync(join(folder, 'empty')).status === 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
const sanitizes = hasSanitizer()
if (!sanitizes) console.log('skipped: undefined behaviour: no C compiler with -fsanitize=undefined')

const leaves = fc.constantFrom(
  'i',
  'i',
  'j',
  'j',
  'c',
  'V[i]',
  'W[j]',
  '1',
  '3',
  '-7',
  '65537',
  '1073741824',
  '2147483647',
)
/** Values of i32, of which most leave their type. */
const values: fc.Arbitrary<string> = fc.letrec<{ e: string }>((tie) => {
  const pair = fc.tuple(tie('e'), tie('e'))
  const infix = (...ops: string[]) =>
    fc.tuple(fc.constantFrom(...ops), pair).map(([op, [a, b]]) => `(${a} ${op} ${b})`)
  const named = (...names: string[]) =>
    fc.tuple(fc.constantFrom(...names), pair).map(([f, [a, b]]) => `${f}(i32(${a}), ${b})`)
  return {
    e: fc.oneof(
      { depthSize: 'medium', maxDepth: 5 },
      { weight: 3, arbitrary: leaves },
      { weight: 5, arbitrary: infix('+', '-', '*') },
      {
        weight: 2,
        arbitrary: fc
          .tuple(tie('e'), fc.constantFrom('/ 3', '% 5', '/ -2', '% c'))
          .map(([a, d]) => `(${a} ${d})`),
      },
      { weight: 1, arbitrary: named('min', 'max', 'bit_xor', 'ceildiv') },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('e'), tie('e'), tie('e'))
          .map(([a, b, x]) => `select(i32(${a}) > i32(${b}), ${x}, i32(u32(${a}) * u32(${b})))`),
      },
      { weight: 1, arbitrary: tie('e').map((a) => `abs(-(${a}))`) },
      { weight: 1, arbitrary: fc.tuple(tie('e'), tie('e')).map(([a, b]) => `shift_left(i32(${a}), ${b})`) },
    ),
  }
}).e

const STEPS = [
  '',
  'unroll i by 4',
  'unroll j',
  'peel i',
  'peel j  unroll i by 2',
  'split i by 4 -> (io, ii)  unroll ii',
  'split i by 4 -> (io, ii)  reorder (io, j, ii)  vectorize ii',
  'split i by 8 -> (io, ii)  split ii by 2 -> (im, ij)  reorder (io, ij, im, j)  unroll ij',
  'split j by 2 -> (jo, ji)  reorder (ji, i, jo)  unroll jo',
  'split i by 4 -> (io, ii)  bind io to block.x, ii to thread.x  unroll j',
]

const text = (value: string, when: string, steps: string): string => `kernel k(n: size, c: i32) {
  axis i = dense_fixed(n) axis j = dense_fixed(3)
  buffer V: i32[i] in buffer W: i32[j] in
  buffer C: i32[i, j] out buffer S: i32[i] out
  iterate s [i, j] as SS { C[i, j] = ${value} }
  iterate t [i, j] as SR where (i32(${when}) > 0) { S[i] += ${value} }
}
schedule k.drawn { ${steps.replace(/\b([ij])\b(?! in)/g, 's.$1')} }
schedule k.other { ${steps.replace(/\b([ij])\b(?! in)/g, 't.$1')} }`

const vector = (n: number, of: (k: number) => number): Tensor => ({
  kind: 'dense',
  shape: [n],
  dtype: 'i32',
  values: Int32Array.from({ length: n }, (_, k) => of(k)),
})

/** Program, arguments and expected results; nothing if a step is rejected or the source is not a program. */
function prepared(source: string, schedule: string, n: number, c: number) {
  const large = (k: number): number => [2147483647, -2147483648, 65536, -1, 40503, 0, 7][k % 7]!
  const tensors = {
    V: vector(n, large),
    W: vector(3, (k) => large(k * 3 + 1)),
  }
  try {
    return bound(source, schedule, { tensors, params: { n, c } })
  } catch (e) {
    if (e instanceof SptError) return undefined
    throw e
  }
}

function bound(source: string, schedule: string, inputs: Parameters<typeof bindInputs>[1]) {
  const { compilation } = parseProgram(source).kernel('k').schedule(schedule)
  const bound = bindInputs(compilation.kernel, inputs)
  const plan = compilation.planFor(TARGETS.c.lowering)
  emit(plan, 'c')
  const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
  const memory = memoryOf(plan.buffers, bound)
  const check = (): void => compare(`${source}\n${schedule}`, bound, memory, expected)
  return { plan, params: bound.params, memory, check } satisfies PlanOnArrays & { check: () => void }
}

function runAll(cases: readonly ReturnType<typeof bound>[], options: readonly string[] = []): void {
  runAsC(cases, [...SANITIZER, ...options])
  for (const c of cases) c.check()
}

// 49 times the factor is the largest i32: only a sum that wraps at its first step has the next one.
test.skipIf(!sanitizes)('an iterator within a value that wraps, unrolled and peeled', () => {
  const cases = STEPS.flatMap((steps) =>
    ['drawn', 'other'].map((s) =>
      prepared(text('(i * 1709221679 + i) / 3', 'i * 1709221679 + i', steps), s, 50, 1),
    ),
  )
  expect(cases.every((c) => c !== undefined)).toBe(true)
  runAll(cases.flatMap((c) => c ?? []))
})

test.skipIf(!sanitizes)('random values under schedules of all kinds', () => {
  const drawn = fc.tuple(
    values,
    values,
    fc.constantFrom(...STEPS),
    fc.integer({ min: 1, max: 300 }),
    fc.constantFrom(2147483647, -2147483648, 3),
  )
  // Steps are rejected for some values: more are drawn than are run.
  const wanted = runs(60)
  const cases: NonNullable<ReturnType<typeof prepared>>[] = []
  for (const [value, when, steps, n, c] of fc.sample(drawn, { numRuns: 4 * wanted, seed: SEED }))
    if (cases.length <= wanted)
      cases.push(...['drawn', 'other'].flatMap((s) => prepared(text(value, when, steps), s, n, c) ?? []))
  expect(cases.length).toBeGreaterThan(wanted)
  runAll(cases)
})

// 1,048,575 * 4,096 is beyond 32 bits. Only without optimisation is a product computed whose value is unused.
test.skipIf(!sanitizes)('addresses of rows that a split adds', () => {
  const source = `kernel k(n: size, m: size) {
  axis i = dense_fixed(n) axis j = dense_fixed(m)
  buffer A: i32[i, j] in buffer y: i32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] }
}
schedule k.padded { split i by 1048576 -> (io, ii)  split ii by 1024 -> (im, it)  bind io to block.x, im to block.y, it to thread.x }
schedule k.unrolled { use padded  split j by 8 -> (jo, ji)  unroll ji }`
  const [n, m] = [1, 4096]
  const A: Tensor = { ...vector(n * m, (k) => k % 5), shape: [n, m] }
  runAll(
    ['padded', 'unrolled'].map((s) => bound(source, s, { tensors: { A }, params: { n, m } })),
    ['-O0'],
  )
})
