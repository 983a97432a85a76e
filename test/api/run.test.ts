/** Kernels on data: from arrays to results, on every device that is here. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bindable, Built, Device, Kernel, Tensor } from '../../src/node.ts'
import { coords, dense, devices, load, stored } from '../../src/node.ts'
import type { Executable } from '../../src/run/execution/execute.ts'
import { commandsMeasuring } from '../../src/run/execution/launch-commands.ts'
import { kernel } from './support.ts'

const A = coords(
  [3, 4],
  [
    [2, 0, 0, 2],
    [3, 2, 0, 1],
  ],
  [5, 2, 1, 4],
)
const B = [1, 2, 3, 4, 5, 6, 7, 8]
/** Rows of A times B by hand: 1 * B0 + 2 * B2, none, 4 * B1 + 5 * B3. */
const C = [1 + 10, 2 + 12, 0, 0, 12 + 35, 16 + 40]

test('booleans are passed as booleans', async () => {
  const program = await load(`\ufeffkernel keep(m: size, all: bool) {
    axis i = dense_fixed(m)
    buffer mask: bool[i] in
    buffer C: i32[i] out
    iterate s [i] as S { C[i] = select(all or mask[i], 1, 0) }
  }`)
  const compiled = await program.kernel().build(await devices.cpu())
  const mask = dense([2], [true, false], 'bool')
  for (const [all, want] of [
    [true, [1, 1]],
    [false, [1, 0]],
    [1, [1, 1]],
  ] as const)
    expect([...(await compiled({ mask, all })).C!.values!]).toEqual(want)
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let k: Kernel
  let compiled: Built
  beforeAll(async () => {
    device = await devices[kind]()
    k = await kernel()
    compiled = await k.build(device)
  })
  afterAll(() => device.dispose())

  const values = (t: Tensor | undefined): number[] => [...t!.values!]

  test.each<[string, Record<'A' | 'B', Bindable>]>([
    ['plain numbers', { A, B }],
    ['typed arrays', { A, B: Float32Array.from(B) }],
    ['another type of array', { A, B: Float64Array.from(B) }],
    ['a dense tensor', { A, B: dense([4, 2], B) }],
    [
      'a dense tensor where a sparse one is stored',
      { A: dense([3, 4], [1, 0, 2, 0, 0, 0, 0, 0, 0, 4, 0, 5]), B },
    ],
    [
      'ready-made arrays',
      {
        A: stored(
          [3, 4],
          { j: { indptr: Int32Array.of(0, 2, 2, 4), indices: Int32Array.of(0, 2, 1, 3) } },
          Float32Array.of(1, 2, 4, 5),
        ),
        B,
      },
    ],
  ])('%s as inputs', async (_, tensors) => {
    const out = await compiled({ ...tensors, d: 2 })
    expect(Object.keys(out)).toEqual(['C'])
    expect(out.C).toMatchObject({ kind: 'dense', shape: [3, 2], dtype: 'f32' })
    expect(values(out.C)).toEqual(C)
  })

  test('one compiled kernel serves every size', async () => {
    for (const d of [0, 1, 5]) {
      const prepared = await compiled.bind({ A, d }, { seed: 3 })
      expect(await prepared.verify()).toMatchObject({ ok: true })
      expect((await prepared.get('C')).shape).toEqual([3, d])
      prepared.free()
    }
    const empty = await compiled({ A: coords([0, 0], [[], []], []), d: 3 }, { seed: 1 })
    expect(values(empty.C)).toEqual([])
  })

  test('every schedule and format gives the same result', async () => {
    for (const x of [k.schedule('gpu', 2), k.as('A', 'bsr', 2), k.as('A', 'bsr', 3).split('io', 2)]) {
      const c = await x.build(device)
      expect(values((await c({ A, B, d: 2 })).C)).toEqual(C)
      c.release()
    }
  })

  test('time, read and verify of one prepared kernel; the caller keeps its arrays', async () => {
    const b = Float32Array.from(B)
    const prepared = await compiled.bind({ A, B: b, d: 2 })
    const times = await prepared.time(3)
    expect(times).toHaveLength(3)
    expect(times.every((t) => t >= 0)).toBe(true)
    expect(await prepared.verify()).toEqual(
      expect.objectContaining({ ok: true, maxAbsoluteError: 0, problems: [] }),
    )
    expect(values(await prepared.get('C'))).toEqual(C)
    expect([...b]).toEqual(B)
    expect(values(A)).toEqual([5, 2, 1, 4])
    prepared.free()
  })

  test('changes to arrays after upload have no effect', async () => {
    const b = Float32Array.from(B)
    const prepared = await compiled.bind({ A, B: b, d: 2 })
    b.fill(7)
    // It compares with what the arrays hold now, and leaves the device's as they are.
    expect((await prepared.verify()).ok).toBe(false)
    await prepared.run()
    expect(values(await prepared.get('C'))).toEqual(C)
    prepared.free()
  })

  test('the same seed gives the same random data', async () => {
    const run = async (seed: number) => values((await compiled({ A, d: 2 }, { seed })).C)
    expect(await run(1)).toEqual(await run(1))
    expect(await run(1)).not.toEqual(await run(2))
  })

  test('memory is estimated before allocation', () => {
    expect(compiled.estimateBytes({ A, d: 2 })).toBeGreaterThanOrEqual(4 * (4 * 2 + 3 * 2))
    expect(() => compiled.estimateBytes({ A, d: 1_000_000_000 })).toThrow(
      /plan\/too-large|device\/buffer-too-large/,
    )
  })
})

test('a temporary is measured by the launches that it depends on, and an output by none', async () => {
  const program = await load(`kernel k(n: size) {
    axis i = dense_fixed(n)
    buffer X: f32[i] in
    buffer T: f32[i] local
    buffer U: f32[i] local
    buffer Y: f32[i] out
    iterate a [i] as S { T[i] = X[i] * 2 }
    iterate b [i] as S { U[i] = T[n - 1 - i] + 1 }
    iterate c [i] as S { Y[i] = U[n - 1 - i] }
  }`)
  const prepared = await (await program.kernel().build(await devices.cpu())).bind({ X: [1, 2, 3, 4] })
  const { executable } = prepared as unknown as { executable: Executable }
  const count = (...names: string[]) => commandsMeasuring(executable, names).length
  expect([count('T'), count('U'), count('T', 'U'), count('Y'), count()]).toEqual([1, 2, 2, 0, 0])
  prepared.free()
})
