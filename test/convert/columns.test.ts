import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitFor } from '../../src/ast/work.ts'
import { add, eq, int, variable } from '../../src/ir/expressions/expr.ts'
import type { Device } from '../../src/runtime/device.ts'
import {
  type Column,
  get,
  natural,
  read,
  store,
  update,
  write,
} from '../../src/storage/engines/device/kernels/kernel-builder.ts'
import { reduce, scan } from '../../src/storage/engines/device/kernels/scan.ts'
import { Queue } from '../../src/storage/engines/device/queue/command-queue.ts'
import { type Cells, PAGE_CELLS } from '../../src/storage/engines/device/queue/readback.ts'
import { radixSort } from '../../src/storage/engines/device/sorting/radix-sort.ts'
import type { Segments } from '../../src/storage/engines/device/sorting/radix-sort-chunks.ts'
import type { Tuning } from '../../src/storage/engines/device/tuning.ts'
import { runs } from '../support/cases.ts'
import { DEVICES } from './devices.ts'

const lengths = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 3000 }))
const column = (max: number): fc.Arbitrary<Int32Array> =>
  lengths.chain((n) =>
    fc.int32Array({ min: 0, max, minLength: n, maxLength: n }).map((a) => Int32Array.from(a)),
  )

/** Who sorts; left out: what the device has. */
const SORTS: readonly (Partial<Tuning> | undefined)[] = [
  undefined,
  { digit: 5, digitOfFew: 5, chunk: { by: 'thread', length: 64 } },
  { digit: 7, digitOfFew: 7, chunk: { by: 'block', threads: 32, items: 3 } },
]

describe.each(DEVICES.filter((d) => d.name !== 'cpu in blocks'))('columns on $kind', ({ kind, open }) => {
  let device: Device
  let q: Queue
  beforeAll(async () => {
    device = await open()
    q = new Queue(device)
  })
  afterAll(async () => {
    await q.dispose()
    await device.dispose()
  })
  const numRuns = runs(kind === 'cpu' ? 10 : 3)
  const order = async (
    values: Int32Array,
    bits: number,
    segments: Segments | null,
    tuning: Partial<Tuning> | undefined,
  ) => {
    Object.assign(q.tuning, tuning)
    const keys = await q.upload(values, 'i32')
    const columns = { keys: natural(keys) }
    const made = radixSort(
      q,
      values.length,
      [{ key: 'keys', bits, columns, value: (e) => get('keys', e) }],
      segments,
    )
    const out = made ? [...((await q.download(made)) as Int32Array)] : [...values.keys()]
    q.release(keys, made)
    return out
  }

  const scans: Tuning['scan'][] = [
    { by: 'thread', length: 16 },
    { by: 'block', threads: 32, items: 3 },
    { by: 'block', threads: 16, items: 1 },
  ]
  test.each(scans)('a scan gives each element the result of the previous ones, %o', async (by) => {
    q.tuning.scan = by
    await fc.assert(
      fc.asyncProperty(column(50), fc.constantFrom('+' as const, 'max' as const), async (values, op) => {
        const from = await q.upload(values, 'i32')
        const to = q.column(values.length)
        const total = q.cells()
        scan(q, {
          key: 'test',
          n: values.length,
          op,
          columns: { from: read(from), to: write(to) },
          value: (e) => get('from', e),
          body: (e, before) => [store('to', e, before)],
          total,
        })
        let sum = 0
        const expected = [...values].map((v) => {
          const before = sum
          sum = op === '+' ? sum + v : Math.max(sum, v)
          return before
        })
        expect([...(await q.download(to))]).toEqual(expected)
        expect(await q.numbers(total)).toEqual([sum])
        q.release(from, to)
      }),
      { numRuns },
    )
  })

  test.each(scans)('a scan restarts at each segment, %o', async (by) => {
    q.tuning.scan = by
    await fc.assert(
      fc.asyncProperty(column(6), async (values) => {
        const from = await q.upload(values, 'i32')
        const to = q.column(values.length)
        scan(q, {
          key: 'segments',
          n: values.length,
          op: '+',
          columns: { from: read(from), to: write(to) },
          value: (e) => get('from', e),
          reset: (e) => eq(get('from', e), int(0)),
          body: (e, before) => [store('to', e, before)],
        })
        let sum = 0
        const expected = [...values].map((v) => {
          if (v === 0) sum = 0
          sum += v
          return sum - v
        })
        expect([...(await q.download(to))]).toEqual(expected)
        q.release(from, to)
      }),
      { numRuns },
    )
  })

  test('scans by threads and scans by blocks of the same length have separate kernels', async () => {
    for (const [by, x] of [
      [{ by: 'block', threads: 16, items: 1 }, 2],
      [{ by: 'thread', length: 16 }, 1],
      [{ by: 'block', threads: 8, items: 2 }, 3],
    ] as const) {
      q.tuning.scan = by
      const column = await q.upload(new Int32Array(100).fill(x), 'i32')
      scan(q, {
        key: 'in place',
        n: 100,
        op: '+',
        columns: { x_column: update(column) },
        value: (e) => get('x_column', e),
        body: (e, before) => [store('x_column', e, before)],
      })
      expect([...(await q.download(column))]).toEqual(Array.from({ length: 100 }, (_, e) => x * e))
      q.release(column)
    }
  })

  test('several reductions at once', async () => {
    await fc.assert(
      fc.asyncProperty(column(1000), fc.constantFrom('+' as const, 'max' as const), async (values, op) => {
        const from = await q.upload(values, 'i32')
        const cells = q.cells(2)
        reduce(q, {
          key: 'test',
          n: values.length,
          op,
          columns: { from: read(from) },
          values: (e) => [get('from', e), e],
          cells,
        })
        const fold = (xs: readonly number[]): number =>
          xs.reduce((a, b) => (op === '+' ? a + b : Math.max(a, b)), 0)
        expect(await q.numbers(cells)).toEqual([fold([...values]), fold([...values.keys()])])
        q.release(from)
      }),
      { numRuns },
    )
  })

  // SwiftShader compiles slowly: there it is only what the device has.
  const sorts = (kind === 'cpu' ? SORTS : SORTS.slice(0, 1)).map(
    (tuning) => [tuning ? `by ${tuning.chunk?.by}` : 'by default', tuning] as const,
  )
  test.each(sorts)('a sort is stable and orders by the key, %s', async (_, tuning) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 17 }), fc.func(fc.nat()), lengths, async (bits, f, n) => {
        const values = Int32Array.from({ length: n }, (_, e) => f(e) % 2 ** bits)
        const expected = [...values.keys()].sort((a, b) => values[a]! - values[b]! || a - b)
        expect(await order(values, bits, null, tuning)).toEqual(expected)
      }),
      { numRuns },
    )
  })

  test.each(sorts)('segments are sorted within themselves, %s', async (_, tuning) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 900 })), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.integer({ min: 1, max: 14 }),
        fc.func(fc.nat()),
        async (sizes, bits, f) => {
          const starts = [0]
          for (const s of sizes) starts.push(starts.at(-1)! + s)
          const n = starts.at(-1)!
          const values = Int32Array.from({ length: n }, (_, e) => f(e) % 2 ** bits)
          const at = await q.upload(Int32Array.from(starts), 'i32')
          const expected = sizes.flatMap((s, k) =>
            Array.from({ length: s }, (_, e) => starts[k]! + e).sort(
              (a, b) => values[a]! - values[b]! || a - b,
            ),
          )
          expect(await order(values, bits, { starts: at, count: sizes.length }, tuning)).toEqual(expected)
          q.release(at)
        },
      ),
      { numRuns },
    )
  })

  test('a failed transaction releases its memory, and no other', async () => {
    const before = q.bytes
    const fill = (to: Column, value: number): void =>
      q.launch({
        key: 'fill',
        threads: to.length,
        columns: { to: write(to) },
        sizes: { value },
        body: (e) => [store('to', e, variable('value'))],
      })
    const turn = Promise.resolve()
    const failing = q.transaction(
      (function* () {
        const earlier = q.column(300)
        q.cells(5)
        yield* waitFor(turn)
        fill(earlier, 1)
        yield* q.together([
          (function* () {
            fill(q.column(300), 2)
            yield* waitFor(turn)
          })(),
        ])
        throw new Error('fails')
      })(),
    )
    const others = q.transaction(
      (function* () {
        const column = q.column(300)
        fill(column, 3)
        yield* waitFor(failing.catch(() => {}))
        return column
      })(),
    )
    await expect(failing).rejects.toThrow('fails')
    const kept = await others
    const later = q.column(300)
    fill(later, 4)
    expect(new Set(await q.download(kept))).toEqual(new Set([3]))
    q.release(kept, later)
    expect(q.bytes).toBe(before)
  })

  test('unread cells are not reused', async () => {
    const leave = (cells: Cells, value: number): void =>
      q.launch({
        key: 'leave',
        threads: cells.count,
        columns: { totals: cells.page },
        sizes: { first: cells.first, value },
        body: (e) => [store('totals', add(variable('first'), e), variable('value'))],
      })
    const before = q.bytes
    // Of a page, three quarters: each but the first is on a page of its own.
    const taken = Array.from({ length: 4 }, (_, k) => {
      const cells = q.cells((PAGE_CELLS * 3) / 4)
      leave(cells, k + 1)
      return cells
    })
    for (const [k, cells] of taken.entries())
      expect(new Set(await q.numbers(cells))).toEqual(new Set([k + 1]))
    expect(await q.numbers(q.cells(3))).toEqual([0, 0, 0])
    expect(q.bytes).toBeLessThanOrEqual(before + PAGE_CELLS * 4)
  })
})
