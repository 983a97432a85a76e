/** What the property tests share: how a case is made from numbers, and how many there are. */
import fc from 'fast-check'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Device } from '../../src/runtime/device.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { generate, type Sample } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { type Scheduled, schedule } from '../support/schedule-gen.ts'
import { agreeOnDevice, bind, type Expected, expectedOf } from './agree.ts'

export const parameters = (usual: number): fc.Parameters<[readonly number[]]> => ({
  numRuns: runs(usual),
  // Shrinking a program takes a while; what is found by then is small enough to read.
  interruptAfterTimeLimit: 90_000 + runs(usual) * 400,
})

export { runs }

/** Unrolled searches within unrolled loops: SwiftShader compiles some thousand characters a second, the other devices more. */
export const tooLongForSwiftShader = (c: Compilation): boolean =>
  c.texts('wgsl').some(({ text }) => text.length > 60_000)

export const numbers = fc.noBias(choiceNumbers(700))

export interface Case {
  readonly sample: Sample
  readonly scheduled: Scheduled
  readonly compilation: Compilation
  readonly bound: Bound
  readonly expected: Expected
}

/** A program, data and a schedule; nothing where the program is not legal. */
export function caseOf(
  choices: readonly number[],
  steps: number,
  make: (c: Choices) => Sample = generate,
  walk = schedule,
): Case | undefined {
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
    if (e instanceof SptError) return undefined
    throw e
  }
  const expected = expectedOf(sample, source)
  const scheduled = walk(c, source, formats, steps)
  const { compilation } = scheduled
  return { sample, scheduled, compilation, bound: bind(sample, compilation), expected }
}

/** Refusals that come only when threads are laid out or a device is known: what a block or a target cannot do. */
const LATE = new Set(['schedule/cross-thread', 'schedule/divergent-barrier', 'emit/no-f64'])

/** Runs `check`; whether the schedule can be carried out at all. A failure tells the whole case. */
export async function carriedOut(k: Case, check: () => void | Promise<void>): Promise<boolean> {
  try {
    await check()
    return true
  } catch (e) {
    if (e instanceof SptError && LATE.has(e.diagnostics[0]!.code)) return false
    const { text, params, reference } = k.sample
    const kernel = text.slice(text.search(/^(monoid|kernel)/m))
    const data = JSON.stringify({ params, buffers: reference.buffers })
    const what = e instanceof Error ? (e.stack ?? e.message) : String(e)
    throw new Error(`${what}\n\n${kernel}\n${data}\n\n${k.scheduled.trace.join('\n')}`)
  }
}

/** Cases under default schedules agree with the reference on a device, but for texts that SwiftShader takes long for. */
export const agreeInParallel = (
  device: Device,
  make: (choices: readonly number[]) => Case | undefined,
  count: number,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = make(choices)
      if (!k) return
      await carriedOut(k, async () => {
        const compilation = k.compilation.parallel()
        if (tooLongForSwiftShader(compilation)) return
        await agreeOnDevice(device, compilation, k.bound, k.expected)
      })
    }),
    parameters(count),
  )
