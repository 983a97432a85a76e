/** Tiles of rows that a list names are kept, and combined into what rows they are: as the reference does, or refused. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { SptError } from '../../src/ast/diagnostic.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { Choices } from '../support/choices.ts'
import { gated, type Scatter, scattered } from '../support/scatter-gen.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters, runs } from './law.ts'

/** The scheduled kernel; its refusal's code where there is one. */
function made({ text }: Scatter): Compilation | string {
  try {
    const { compilation } = parseProgram(text).kernel().schedule('s')
    void compilation.loops
    void compilation.plan
    return compilation
  } catch (e) {
    if (e instanceof SptError && /^schedule\//.test(e.diagnostics[0]!.code)) return e.diagnostics[0]!.code
    throw new Error(`${(e as Error).message}\n${text}`)
  }
}

const CASES = 150
const told = (e: unknown, s: Scatter): Error =>
  new Error(`${e instanceof Error ? e.stack : e}\n${s.text}\n${JSON.stringify(s.inputs)}`)

const WHAT = [
  ['a tile of listed rows is written back to its rows', scattered],
  ['a tile is gated and combined where it is complete', gated],
] as const

test.each(WHAT)(
  '%s, on every stage and the cpu',
  async (_, make) => {
    const seen = { kept: 0, codes: new Map<string, number>() }
    await fc.assert(
      fc.asyncProperty(numbers, async (choices) => {
        const s = make(new Choices(choices))
        const c = made(s)
        if (typeof c === 'string') {
          seen.codes.set(c, (seen.codes.get(c) ?? 0) + 1)
          return
        }
        seen.kept++
        await agreeOnAll(c, s.inputs).catch((e) => {
          throw told(e, s)
        })
      }),
      parameters(CASES),
    )
    if (runs(CASES) >= CASES) expect(seen.kept).toBeGreaterThan(CASES / 5)
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
        const c = made(s)
        if (typeof c === 'string') return
        const bound = bindInputs(c.kernel, s.inputs)
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(device, c, bound, expected).catch((e) => {
          throw told(e, s)
        })
      }),
      parameters(8),
    )
    await device.dispose()
  },
  3_600_000,
)

test('rows of a tile that meet in another buffer as well are refused', () => {
  const c = made({
    text: `kernel k(m: size, s: size, q: size) {
  axis r = dense_fixed(m)
  axis a = dense_fixed(s)
  axis p = dense_fixed(q)
  buffer L: i32[a] in
  buffer X: i32[a, p] in
  buffer C: i32[r] out
  buffer y: i32[] out
  iterate outer [a] as R {
    iterate rows [p] as R { C[L[a]] += X[a, p] }
    iterate last [p] as R { y[] max= X[a, p] }
  }
}
schedule k.s { split outer.a by 4 -> (ao, ar)  cache_write C at ao in register }`,
    inputs: {},
  })
  expect(c).toBe('schedule/not-one-reduction')
})
