/** What the property tests share: how a case is made from numbers, and how many there are. */
import fc from 'fast-check'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Device } from '../../src/runtime/device.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { assertCompared, Skipped } from '../support/compared.ts'
import { generate, type Sample } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { type Scheduled, schedule } from '../support/schedule-gen.ts'
import { agreeOnDevice, agreeOnStages, bind, type Expected, expectedOf } from './agree.ts'

export const parameters = (usual: number): fc.Parameters<[readonly number[]]> => ({
  numRuns: runs(usual),
})

export { runs }

/** SwiftShader compiles some thousand characters a second: not what has unrolled searches within unrolled loops. */
function skipLongTexts(c: Compilation): void {
  if (c.texts('wgsl').some(({ text }) => text.length > 60_000)) throw new Skipped('long text')
}

export const numbers = fc.noBias(choiceNumbers(700))

export interface Case {
  readonly sample: Sample
  readonly scheduled: Scheduled
  readonly compilation: Compilation
  readonly bound: Bound
  readonly expected: Expected
}

/** A program, data and a schedule. @throws Skipped if the program is not legal */
export function caseOf(
  choices: readonly number[],
  steps: number,
  make: (c: Choices) => Sample = generate,
  walk = schedule,
): Case {
  const c = new Choices(choices)
  const sample = make(c)
  let formats: ReturnType<typeof readSample>['formats']
  let source: Compilation
  try {
    const read = readSample(sample)
    formats = read.formats
    source = read.program.kernel().compilation
    // Looking up what lies under unordered duplicates is refused here.
    void source.loops
  } catch (e) {
    throw e instanceof SptError ? new Skipped(e.diagnostics[0]!.code) : e
  }
  const expected = expectedOf(sample, source)
  const scheduled = walk(c, source, formats, steps)
  const { compilation } = scheduled
  return { sample, scheduled, compilation, bound: bind(sample, compilation), expected }
}

/** Refusals that come only when threads are laid out or a device is known: what a block or a target cannot do. */
const LATE = new Set(['schedule/cross-thread', 'schedule/divergent-barrier', 'emit/no-f64'])

/** Runs `check`. A failure reports the whole case. @throws Skipped if the schedule cannot be carried out at all */
async function carriedOut(k: Case, check: () => void | Promise<void>): Promise<void> {
  try {
    await check()
  } catch (e) {
    if (e instanceof Skipped) throw e
    if (e instanceof SptError && LATE.has(e.diagnostics[0]!.code)) throw new Skipped(e.diagnostics[0]!.code)
    const { text, params, reference } = k.sample
    const kernel = text.slice(text.search(/^(monoid|kernel)/m))
    const data = JSON.stringify({ params, buffers: reference.buffers })
    const what = e instanceof Error ? (e.stack ?? e.message) : String(e)
    throw new Error(`${what}\n\n${kernel}\n${data}\n\n${k.scheduled.trace.join('\n')}`)
  }
}

/** `check` passes for random cases. */
export const assertCases = <C extends Case>(
  make: (choices: readonly number[]) => C,
  check: (k: C) => void | Promise<void>,
  count: number,
): Promise<void> =>
  assertCompared(
    numbers,
    (choices) => {
      const k = make(choices)
      return carriedOut(k, () => check(k))
    },
    parameters(count),
  )

/** Cases agree with the reference at every stage and on a device. */
export const agreeInCases = (
  device: Device,
  make: (choices: readonly number[]) => Case,
  count: number,
): Promise<void> =>
  assertCases(
    make,
    (k) => {
      agreeOnStages(k.compilation, k.bound, k.expected)
      return agreeOnDevice(device, k.compilation, k.bound, k.expected)
    },
    count,
  )

/** Cases agree with the reference on WebGPU. */
export const agreeOnWebGpu = (
  device: Device,
  make: (choices: readonly number[]) => Case,
  count: number,
): Promise<void> =>
  assertCases(
    make,
    (k) => {
      skipLongTexts(k.compilation)
      return agreeOnDevice(device, k.compilation, k.bound, k.expected)
    },
    count,
  )

/** The case with default schedules for many threads. */
export const inParallel = <C extends Case>(k: C): C => ({ ...k, compilation: k.compilation.parallel() })
