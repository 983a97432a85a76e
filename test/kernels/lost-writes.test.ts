/** A write to an element that does not exist ends the run with an error, on every device and under schedules. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { constant, type Expr, load as element, int, lt } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { markLostWrites } from '../../src/lower/memory/lost-writes.ts'
import { lower } from '../../src/lower/pipeline.ts'
import { coords, type Device, dense, devices, type Kernel, load } from '../../src/node.ts'
import { buffer, expr, kernel2, reduce, store } from '../support/stage2-builders.ts'

type Tensors = NonNullable<RunInputs['tensors']>
type Params = NonNullable<RunInputs['params']>

const SOURCE = `
kernel store(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer B: f32[i, k] out
  iterate copy [i, j] as SS { B[i, j] = A[i, j] }
}
kernel combine(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer X: f32[f] in
  buffer B: f32[i, k] out
  iterate sum [i, j, f] as SSR { B[i, j] += A[i, j] * X[f] }
}
kernel scatter(n: size, m: size, d: size) {
  axis p = dense_fixed(n)
  axis y = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer to: i32[p] in
  buffer X: f32[p, f] in
  buffer Y: f32[y] out
  iterate add [p, f] as RR { Y[to[p]] += X[p, f] }
}
kernel guarded(n: size, m: size) {
  axis p = dense_fixed(n)
  axis y = dense_fixed(m)
  buffer to: i32[p] in
  buffer X: f32[p] in
  buffer Y: f32[y] out
  iterate add [p] as R {
    if (to[p] >= 0 and to[p] < m) { Y[to[p]] += X[p] }
  }
}
monoid pair(s: f32, m: f32) {
  identity (0, -inf)
  combine (a, b) = (a.s + b.s, max(a.m, b.m))
}
kernel both(n: size, m: size) {
  axis p = dense_fixed(n)
  axis y = dense_fixed(m)
  buffer to: i32[p] in
  buffer X: f32[p] in
  buffer Y: f32[p] in
  buffer S: f32[y] out
  buffer M: f32[y] out
  iterate add [p] as R { (S[to[p]], M[to[p]]) pair= (X[p], Y[p]) }
}
schedule combine.cached() { cache_write B at j in register }
schedule combine.gpu() { cache_write B at j in register; bind i to block.x }
schedule scatter.cached() { cache_write Y at p in register }
schedule scatter.gpu() {
  cache_write Y at p in register
  atomic Y
  split p by 4 -> (po, pi)
  bind po to block.x, pi to thread.x
}
`

let program: Awaited<ReturnType<typeof load>>
const present: Device[] = []
beforeAll(async () => {
  program = await load(SOURCE)
  present.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of present) await d.dispose()
})

const pattern = (columns: readonly (readonly [number, number])[], values: readonly number[] | null = null) =>
  coords([3, 5], [columns.map((c) => c[0]), columns.map((c) => c[1])], values && Float32Array.from(values))

/** What the run of a kernel ends with: its outputs, or the code and message of the error. */
async function outcome(kernel: Kernel, device: Device, tensors: Tensors, params: Params): Promise<unknown> {
  const compiled = await kernel.build(device)
  try {
    const out = await compiled({ ...tensors, ...params })
    return Object.values(out).map((t) => [...t.values!])
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.diagnostics.map((d) => `${d.code}: ${d.message}`)
  } finally {
    compiled.release()
  }
}

async function everywhere(name: string, tensors: Tensors, params: Params = {}): Promise<unknown[]> {
  const kernel = program.kernel(name)
  const out: unknown[] = []
  for (const schedule of [null, ...kernel.schedules])
    for (const d of present)
      out.push(await outcome(schedule === null ? kernel : kernel.schedule(schedule), d, tensors, params))
  return out
}

const at = [
  [0, 1],
  [0, 4],
  [2, 0],
] as const

describe('lost writes (elements that the output format does not store)', () => {
  test('are reported for an assignment', async () => {
    const lacks = { A: pattern(at, [1, 2, 3]), k: pattern([at[0], at[2], [1, 1]]) }
    for (const o of await everywhere('store', lacks))
      expect(o).toEqual([
        'run/lost-writes: store writes elements of B that do not exist: B[0, 4] is written, but it is not stored',
      ])
    const holds = { A: pattern(at, [1, 2, 3]), k: pattern([...at, [1, 1]]) }
    for (const o of await everywhere('store', holds)) expect(o).toEqual([[1, 2, 0, 3]])
  })

  test('are reported for a reduction, in memory and in registers', async () => {
    const X = dense([2], Float32Array.of(1, 2))
    const lacks = { A: pattern(at, [1, 2, 3]), X, k: pattern([at[0], at[2]]) }
    for (const o of await everywhere('combine', lacks))
      expect(o).toEqual([
        'run/lost-writes: combine writes elements of B that do not exist: B[0, 4] is written, but it is not stored',
      ])
    const holds = { A: pattern(at, [1, 2, 3]), X, k: pattern(at) }
    for (const o of await everywhere('combine', holds)) expect(o).toEqual([[3, 6, 9]])
  })

  test('are not reported if the identity is combined', async () => {
    const X = dense([2], Float32Array.of(1, 2))
    const lacks = { A: pattern(at, [1, 0, 3]), X, k: pattern([at[0], at[2]]) }
    for (const o of await everywhere('combine', lacks)) expect(o).toEqual([[3, 9]])
    const compiled = await program.kernel('combine').build(present[0]!)
    const prepared = await compiled.bind(lacks)
    expect(await prepared.verify()).toMatchObject({ ok: true })
    // What is named is what is lost: not the identity that came before it.
    const other = await compiled.bind({
      ...lacks,
      A: pattern(
        [
          [0, 1],
          [0, 4],
          [1, 2],
        ],
        [1, 0, 3],
      ),
    })
    await expect(other.run()).rejects.toThrow('B[1, 2] is written')
    for (const p of [prepared, other]) p.free()
    compiled.release()
  })

  test('the error states that a large problem was not checked against the reference', async () => {
    const compiled = await program.kernel('scatter').build(present[0]!)
    const late = async (n: number, d: number): Promise<string | undefined> => {
      const to = new Int32Array(n)
      to[n - 1] = 3
      const prepared = await compiled.bind({ to, X: new Float32Array(n * d).fill(1), m: 3, d })
      const error = await prepared.run().catch((e: unknown) => e)
      prepared.free()
      expect(error).toBeInstanceOf(SptError)
      const { code, message, hint } = (error as SptError).diagnostics[0]!
      expect([code, message]).toEqual(['run/lost-writes', 'scatter writes elements of Y that do not exist'])
      return hint
    }
    expect(await late(4, 2 ** 20)).toMatch(
      'no coordinate is named: the first 2097152 iterations lose nothing',
    )
    expect(await late(4, 2 ** 22 + 1)).toMatch(
      'no coordinate is named: it is looked for in tensors of up to 64 MiB',
    )
    compiled.release()
  })

  test('are reported for a tuple with any value other than the identity', async () => {
    const to = Int32Array.of(0, 5, 1)
    const both = (x: number, y: number) =>
      everywhere('both', { to, X: Float32Array.of(1, x, 2), Y: Float32Array.of(3, y, 4) }, { m: 2 })
    const lost =
      'run/lost-writes: both writes elements of S that do not exist: S[5] is written, but it is not stored'
    const found = (o: unknown): unknown =>
      Array.isArray(o) ? String(o[0]).replace(/of [SM] that/, 'of S that') : o
    for (const [x, y] of [
      [0, 4],
      [4, -Infinity],
      [4, 4],
    ] as const)
      for (const o of await both(x, y)) expect([x, y, found(o)]).toEqual([x, y, lost])
    for (const o of await both(0, -Infinity))
      expect(o).toEqual([
        [1, 2],
        [3, 4],
      ])
  })

  test('an indirect index out of bounds is reported, and other elements are stored', async () => {
    const X = Float32Array.from({ length: 12 }, (_, e) => e + 1)
    const kernel = program.kernel('scatter')
    for (const outside of [-1, 3, 1000000])
      for (const schedule of [null, ...kernel.schedules])
        for (const d of present) {
          const what = `${outside} ${schedule} ${d.kind}`
          const compiled = await (schedule === null ? kernel : kernel.schedule(schedule)).build(d)
          const to = Int32Array.of(0, 1, 2, outside, 1, 0)
          const prepared = await compiled.bind({ to, X, m: 3, d: 2 })
          await expect(prepared.run(), what).rejects.toThrow(
            `scatter writes elements of Y that do not exist: Y[${outside}] is written`,
          )
          expect([...(await prepared.get('Y')).values!], what).toEqual([26, 26, 11])
          prepared.free()
          compiled.release()
        }
  })

  test('write-back from registers has the same predicate', () => {
    expect(
      print2(program.kernel('scatter').schedule('cached').compilation.loops, { bodyOnly: true }),
    ).toMatchInlineSnapshot(`
      "fill Y = 0
      for p in 0..n  reduce
        alloc Y_register: f32[1] register
        for f in 0..d  reduce
          if to[p] >= 0 and to[p] < m  or lost Y
            Y_register[0] += X[p, f]  init
        if to[p] >= 0 and to[p] < m  or lost Y
          Y[to[p]] += Y_register[0]"
    `)
  })

  test('padding zeros are not reported, through any expression', async () => {
    const own = await load(`import "sparsetile/kernels/formats.spt"
      kernel add(m: size, n: size) {
        axis i = dense_fixed(m)
        axis j = sparse_variable(i, n)
        axis k = sparse_variable(i, n)
        buffer A: f32[i, j] in
        buffer B: f32[i, k] out
        iterate all [i, j] as SS { B[i, j] += A[i, j] }
      }`)
    const at = [
      [0, 1, 2],
      [0, 1, 0],
    ]
    const A = coords([3, 3], at, [1, 2, 3], 'f32')
    const elsewhere = coords(
      [3, 3],
      [
        [0, 1],
        [0, 1],
      ],
      null,
    )
    for (const d of present)
      for (const combined of [false, true]) {
        const diagonals = own.kernel().as('A', 'dia')
        const kernel = combined ? diagonals.combine('B') : diagonals
        const compiled = await kernel.build(d)
        const prepared = await compiled.bind({ A, k: coords([3, 3], at, null) })
        await prepared.run()
        expect([...(await prepared.get('B')).values!]).toEqual([1, 2, 3])
        prepared.free()
        const less = await compiled.bind({ A, k: elsewhere })
        await expect(less.run()).rejects.toThrow('B[2, 0] is written')
        less.free()
        compiled.release()
      }
  })

  test('elements excluded by a condition of the program are not reported, without run-time cost', async () => {
    const to = Int32Array.of(2, -1, 0, 3)
    for (const o of await everywhere('guarded', { to, X: Float32Array.of(1, 2, 3, 4) }, { m: 3 }))
      expect(o).toEqual([[3, 0, 1]])
    expect(lower(program.kernel('guarded').compilation.kernel).lostWrites).toBeUndefined()
    expect(lower(program.kernel('store').compilation.kernel).lostWrites?.targets).toEqual(['B'])
  })
})

test('a skipped start with a value loses it, and a skipped identity nothing', () => {
  const skipped = (first: Expr) => {
    const body = [
      store(element('y', [int(0)]), first),
      reduce(element('y', [int(0)]), '+', element('x', [int(0)]), {}),
    ]
    const kernel = kernel2(
      'k',
      ['m'],
      [buffer('x', [1], 'in'), buffer('y', [1], 'out')],
      [when(lt(int(0), expr('m')), body, [], { absent: 'y' })],
    )
    const last = markLostWrites(kernel).body.at(-1)!
    return last.kind === 'if' ? last.else.map((s) => s.kind) : []
  }
  expect(skipped(constant(0, 'f32'))).toEqual(['if'])
  expect(skipped(element('x', [int(0)]))).toEqual(['reduce'])
})
