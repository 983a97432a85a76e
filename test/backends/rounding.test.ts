/** Conversions to narrow floating-point types round once, whatever they come from. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromBf16, fromF16, toBf16, toF16 } from '../../src/ir/values/half.ts'
import { type Device, dense, devices, load } from '../../src/node.ts'

let all: readonly Device[] = []
beforeAll(async () => {
  all = [await devices.cpu(), await devices.webgpu()]
})
afterAll(async () => {
  for (const d of all) await d.dispose()
})

/** Around what lies half-way between neighbours, where rounding to f32 first would make ties of what are none. */
function nearTies(from: 'f64' | 'i32' | 'u32'): number[] {
  const ties = Array.from({ length: 400 }, (_, k) =>
    from === 'f64'
      ? (k % 2 ? fromF16(k * 77) + fromF16(k * 77 + 1) : fromBf16(k * 81) + fromBf16(k * 81 + 1)) / 2
      : ((k % 256) * 2 + 513) * 2 ** (k % 21),
  )
  if (from !== 'f64') return ties.flatMap((x) => [x - 1, x, x + 1]).map((x) => (from === 'i32' ? x : x * 2))
  return ties.flatMap((x) => [x, x * (1 + 2 ** -30), x * (1 - 2 ** -50), -x * (1 + 2 ** -41)])
}

test.each(
  (['f16', 'bf16'] as const).flatMap((to) =>
    (['f64', 'i32', 'u32'] as const).map((from) => [from, to] as const),
  ),
)('%s rounds to %s once', async (from, to) => {
  const k = (
    await load(`kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer X: ${from}[i] in
    buffer Y: ${to}[i] out
    iterate s [i] as S { Y[i] = ${to}(X[i]) }
  }`)
  ).kernel()
  const xs = nearTies(from)
  const X = { f64: Float64Array, i32: Int32Array, u32: Uint32Array }[from].from(xs)
  for (const device of all) {
    if (from === 'f64' && device.kind === 'webgpu') continue
    const { Y } = await (await k.build(device))({ X: dense([xs.length], X) })
    expect([...Y!.values!], device.kind).toEqual(xs.map(to === 'f16' ? toF16 : toBf16))
  }
})

test('registers hold rounded element values', async () => {
  const base = (
    await load(`kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer X: f32[i] in
    buffer L: f32[i] local
    buffer Y: i32[i] out
    iterate a [i] as S { L[i] = X[i] + 1 }
    iterate b [i] as S { Y[i] = select(L[i] > X[i], 1, 0) }
  }`)
  ).kernel()
  const at = base.computeAt('a', 'b.i')
  for (const device of all)
    for (const k of [base, at, at.cacheWrite('L', 'b.i', 'register')]) {
      const { Y } = await (await k.build(device))({ X: dense([2], [16777216, 3]) })
      expect([...Y!.values!], `${device.kind} ${k.trace.join('; ')}`).toEqual([0, 1])
    }
})
