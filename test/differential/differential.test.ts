/**
 * Generated programs, formats and schedules through the public API, against a naive evaluation that shares nothing with
 * the compiler: nested loops over all coordinates, tensors as dictionaries, integers of any size. Values are such that
 * every order of operations gives the same result, so that equality is exact. `SPT_PROPERTY_MINUTES` looks for so long.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Device, devices } from '../../src/node.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { check } from './agree.ts'
import type { Type } from './numbers.ts'

const MINUTES = Number(process.env.SPT_PROPERTY_MINUTES ?? 0)

/** `share` of the usual number of cases. */
function parameters(share: number): fc.Parameters<[readonly number[]]> {
  const { numRuns = 100 } = fc.readConfigureGlobal()
  if (MINUTES === 0) return { numRuns: Math.ceil(numRuns * share) }
  return { numRuns: 10_000_000, interruptAfterTimeLimit: MINUTES * 60_000 }
}

/** On GPUs in long searches alone: each launch is compiled, which takes most of the time. */
const CASES: readonly (readonly ['cpu' | 'webgpu' | 'cuda', number, readonly Type[]])[] = [
  ['cpu', 0.5, ['f32', 'f64', 'f16', 'bf16']],
  ...(MINUTES > 0
    ? ([
        ['webgpu', 0.4, ['f32', 'f16', 'bf16']],
        ['cuda', 0.4, ['f32', 'f64', 'f16', 'bf16']],
      ] as const)
    : []),
]

const opened = new Map<string, Device>()
beforeAll(async () => {
  for (const [kind] of CASES) {
    try {
      opened.set(kind, await devices[kind]())
    } catch (e) {
      if (kind !== 'cuda' || !(e instanceof SptError)) throw e
    }
  }
})
afterAll(async () => {
  for (const device of opened.values()) await device.dispose()
})

test.for(CASES)(
  '%s computes the meaning of programs under formats and schedules',
  MINUTES === 0 ? {} : { timeout: (MINUTES + 10) * 60_000 },
  async ([kind, share, types], { skip }) => {
    const device = opened.get(kind) ?? skip(`there is no ${kind} device`)
    let ran = 0
    let refused = 0
    await fc.assert(
      fc.asyncProperty(fc.noBias(choiceNumbers(1200)), async (numbers) => {
        let text = ''
        let trace: readonly string[] = []
        let step = ''
        try {
          const agreed = await check(new Choices(numbers), device, types, {
            text: (t) => {
              text = t.slice(t.search(/^(monoid|kernel)/m))
            },
            trying: (done, next) => {
              trace = done
              step = next
            },
          })
          if (agreed) ran++
          else refused++
        } catch (e) {
          const what = e instanceof Error ? (e.stack ?? e.message) : String(e)
          throw new Error(`${what}\n\n${text}\n${trace.join('\n')}\nlast step: ${step}`)
        }
      }),
      parameters(share),
    )
    // Most programs are legal; a run that refuses nearly all would test nothing.
    expect(ran).toBeGreaterThan(0.3 * (ran + refused))
  },
)
