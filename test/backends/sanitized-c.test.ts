/**
 * Emitted C has no undefined behaviour: generated programs run under sanitizers of addresses and of integer arithmetic. Their values
 * are computed from coordinates and data at the limits of i32, and wrap. Steps substitute arithmetic on coordinates into them.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { memoryOf } from '../../src/api/stages/stage-check.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { TARGETS } from '../../src/backends/targets/index.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { compare } from '../properties/agree.ts'
import { numbers } from '../properties/property-cases.ts'
import { compilerOfC, type PlanOnArrays, runAsC } from '../support/c-program.ts'
import { runs, SEED } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { I8, I32, signed, U32 } from '../support/wrapping-gen.ts'

const SANITIZERS = ['-O0', '-fsanitize=undefined,address', '-fno-sanitize-recover=all']

const THREADS = 'split s.i by 32 -> (block, thread)'
const BOUND = 'bind block to block.x bind thread to thread.x'
const SCHEDULES = [
  '',
  'unroll s.i by 4 unroll t.i by 4',
  'peel s.i',
  'split s.i by 8 -> (io, ii)',
  'split s.i by 8 -> (io, ii) unroll ii reorder (ii, io)',
  `${THREADS} ${BOUND}`,
  `split s.i by 4 -> (iv, each) unroll each ${THREADS.replace(' s.i ', ' iv ')} ${BOUND}`,
]

const LEAST = '(i - 2147483647 - 1)'
/** Operations on coordinates that exceed 32 bits, one for each operator, in quotients: equal modulo 2^32 is not enough. */
const OVERFLOWS = [
  // For odd i, the first sum is 2^31 - i + 8, so that adding i less a constant below 8 exceeds 32 bits.
  '((i * 2147483647 + 8 + i) / 3)',
  '((i + 2147483640) / 3)',
  '((-2147483640 - i) / 3)',
  `(-${LEAST} / 3)`,
  `(abs(${LEAST}) / 3)`,
  `(${LEAST} / (i - 1))`,
  `(${LEAST} % (i - 1))`,
  `ceildiv(${LEAST}, i - 1)`,
]

const kernel = (value: string, schedule: string): string => `monoid total(sum: i32, count: i32) {
  identity (0, -1)
  combine (a, b) = (a.sum + b.sum, a.count + b.count + 1)
}
kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer u: u32[i] in
  buffer b: i32[i] in
  buffer c: i8[i] in
  buffer C: i32[i] out
  buffer sum: i32[] out
  buffer count: i32[] out
  iterate s [i] as S { C[i] = ${value} }
  iterate t [i] as R { (sum[], count[]) total= (${value}, 1) }
}
schedule k.s { ${schedule} }
`

interface Checked extends PlanOnArrays {
  readonly check: () => void
}

function caseOf(
  value: string,
  schedule: string,
  m: number,
  pick: (from: readonly number[]) => number,
): Checked {
  const text = kernel(value, schedule)
  const c = parseProgram(text).kernel().schedule('s').compilation
  const of = (from: readonly number[]): number[] => Array.from({ length: m }, () => pick(from))
  const tensors = {
    u: dense([m], new Uint32Array(of(U32))),
    b: dense([m], new Int32Array(of(I32))),
    c: dense([m], new Int8Array(of(I8))),
  }
  const bound = bindInputs(c.kernel, { tensors })
  const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  const plan = c.planFor(TARGETS.c.lowering)
  const memory = memoryOf(plan.buffers, bound)
  return { plan, params: bound.params, memory, check: () => compare(text, bound, memory, expected) }
}

test.skipIf(!compilerOfC)('values of generated programs wrap without undefined behaviour', () => {
  const cases: (Checked & { readonly wide?: boolean })[] = [false, true].flatMap((wide) =>
    SCHEDULES.map((s) => ({
      ...caseOf(
        OVERFLOWS.reduce((a, b) => `bit_xor(${a}, ${b})`),
        s,
        67,
        () => 0,
      ),
      wide,
    })),
  )
  for (const [k, choices] of fc.sample(numbers, { numRuns: runs(30), seed: SEED }).entries()) {
    const c = new Choices(choices)
    const schedule = SCHEDULES[k % SCHEDULES.length]!
    const made = resultOrError(() => caseOf(signed(c, 3), schedule, 41, (from) => c.pick(from)))
    // The reference rejects divisions by what is known to be 0.
    if (!(made instanceof SptError)) cases.push({ ...made, wide: c.chance(30) })
  }
  expect(cases.length).toBeGreaterThan(2 * SCHEDULES.length + runs(30) / 2)
  runAsC(cases, SANITIZERS)
  for (const c of cases) c.check()
})
