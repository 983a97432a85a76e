/** Nests in common loops do what they did one after the other, or are refused; what they combine in one place may be kept there. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernel.ts'
import { parseProgram } from '../../src/api/program.ts'
import { SptError } from '../../src/ast/diagnostic.ts'
import { print2 } from '../../src/ir/print-stage2.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import type { Step } from '../../src/schedule/resolve.ts'
import { Choices } from '../support/choices.ts'
import { type Joined, joinedNests, joinedParts } from '../support/join-gen.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters, runs } from './law.ts'

interface Made {
  readonly compilation: Compilation
  /** What was accepted, with the loops it makes. */
  readonly steps: readonly string[]
  readonly refused: readonly string[]
}

/** A schedule of one step alone may act on coordinates. */
const ofLoops = (s: Step): Step =>
  s.stage === 1 && s.step.kind === 'reorder' ? { stage: 2, step: s.step } : s

/** The kernel with those of the steps that are legal. */
function made({ text, steps }: Joined): Made {
  const schedules = steps.map((s, k) => `schedule k.s${k} { ${s} }`)
  const kernel = parseProgram(`${text}\n${schedules.join('\n')}`).kernel()
  const quick = keeping(kernel, text, steps, false)
  try {
    void quick.compilation.plan
    return quick
  } catch {
    // One of them cannot be lowered.
    return keeping(kernel, text, steps, true)
  }
}

/** Of the steps those that are legal; `lowered`: each of which can be lowered, too. */
function keeping(kernel: Kernel, text: string, steps: readonly string[], lowered: boolean): Made {
  let { compilation } = kernel
  const kept: string[] = []
  const refused: string[] = []
  for (const [k, step] of steps.entries())
    try {
      const next = kernel
        .steps(`s${k}`)
        .map(ofLoops)
        .reduce((c, s) => c.step(s), compilation)
      void next.loops
      if (lowered) void next.plan
      compilation = next
      kept.push(step)
    } catch (e) {
      if (!(e instanceof SptError) || !/^schedule\//.test(e.diagnostics[0]!.code))
        throw told(e, text, kept, step)
      refused.push(e.diagnostics[0]!.code)
    }
  return { compilation, steps: kept, refused }
}

const told = (e: unknown, ...what: unknown[]): Error =>
  new Error(
    `${e instanceof Error ? e.stack : e}\n${what
      .flat()
      .map((x) => (typeof x === 'string' ? x : JSON.stringify(x)))
      .join('\n')}`,
  )

const isJoined = (m: Made): boolean => m.steps.some((s) => s.startsWith('join'))

const WHAT = [
  // Most of the first are joined.
  ['parts combine into rows', joinedParts, 30],
  ['nests meet in buffers', joinedNests, 50],
] as const

test.each(WHAT)(
  '%s, on every stage and the cpu',
  async (_, make, usual) => {
    const seen = { joined: 0, cached: 0, met: 0 }
    await fc.assert(
      fc.asyncProperty(numbers, async (choices) => {
        const s = make(new Choices(choices))
        const m = made(s)
        if (m.refused.includes('schedule/order-matters')) seen.met++
        if (!isJoined(m)) return
        seen.joined++
        if (m.steps.some((x) => x.startsWith('cache_write'))) seen.cached++
        await agreeOnAll(m.compilation, s.inputs).catch((e) => {
          throw told(e, s.text, m.steps, print2(m.compilation.loops), s.inputs)
        })
      }),
      parameters(usual),
    )
    if (runs(usual) >= usual) {
      expect(seen.joined).toBeGreaterThan(usual / 3)
      expect(seen.cached).toBeGreaterThan(usual / 100)
      if (make === joinedNests) expect(seen.met).toBeGreaterThan(usual / 50)
    }
  },
  3_600_000,
)

test.each(WHAT)(
  '%s, on webgpu',
  async (_, make) => {
    const device = await createNodeWebGpu()
    await fc.assert(
      fc.asyncProperty(numbers, async (choices) => {
        const s = make(new Choices(choices))
        const m = made(s)
        if (!isJoined(m)) return
        const c = m.compilation
        const bound = bindInputs(c.kernel, s.inputs)
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(device, c, bound, expected).catch((e) => {
          throw told(e, s.text, m.steps, s.inputs)
        })
      }),
      parameters(5),
    )
    await device.dispose()
  },
  3_600_000,
)
