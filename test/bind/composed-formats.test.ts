/** Tensors in parts: results, values written and read, ready-made parts; one compiled kernel for all data. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Device, Kernel, SptProgram } from '../../src/node.ts'
import { coords, devices, load } from '../../src/node.ts'
import { reportOf } from '../../src/run/bind/results/format-report.ts'
import { toCoords } from '../../src/storage/entries/stored-coords.ts'
import type { StoredTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import { CHOICES, FORMATS, KERNELS } from './programs.ts'
import { compileAll, inputs, type Ready, type Sample, samples } from './support.ts'

let device: Device
let program: SptProgram
let all: readonly Ready[]
beforeAll(async () => {
  device = await devices.cpu()
  program = await load(FORMATS + KERNELS)
  all = await compileAll(program, CHOICES, device)
})
afterAll(() => device.dispose())

const each = (name: string, check: (r: Ready, s: Sample) => Promise<void>, usual = 3): void => {
  test(name, async () => {
    for (const r of all)
      await fc
        .assert(
          fc.asyncProperty(samples, (s) => check(r, s)),
          { numRuns: runs(usual) },
        )
        .catch((e: unknown) => {
          throw new Error(`${r.kernel}, ${r.choice.join(' ')}: ${e instanceof Error ? e.message : e}`)
        })
  })
}

describe('properties', () => {
  each('results equal those of the unscheduled kernel', async ({ kernel, choice, compiled }, s) => {
    const prepared = await compiled.bind(...flatInputs(inputs(kernel, choice, s)))
    const v = await prepared.verify()
    expect(v.problems).toEqual([])
    expect(v.maxAbsoluteError).toBe(0)
    prepared.free()
  })

  each('reports count stored elements', async ({ kernel, choice, compiled }, s) => {
    const bound = compiled.bindOnHost(...flatInputs(inputs(kernel, choice, s)))
    const different = new Set(s.rows.map((i, e) => i * s.n + s.cols[e]!)).size
    for (const t of reportOf(bound)) {
      expect(t.stored).toBe(different)
      expect(t.slots - t.padding).toBe(different)
      expect(t.parts.reduce((n, p) => n + p.stored, 0)).toBe(different)
      for (const p of t.parts) {
        expect(p.slots).toBe(bound.storages.get(p.buffer)!.size)
        expect(p.rows).toBeLessThanOrEqual(Math.min(s.m, p.stored))
        expect(p.rows > 0).toBe(p.stored > 0)
      }
    }
    expect(reportOf(bound).map((t) => t.tensor)).toEqual(kernel === 'sample' ? ['A', 'V', 'O'] : ['A'])
  })

  each('written values equal bound values', async ({ kernel, choice, compiled }, s) => {
    // What parts a value goes to must not depend on it here.
    if (choice[0].includes('top')) return
    const values = s.values.map((x, e) => x * 2 + (e % 3))
    const prepared = await compiled.bind(...flatInputs(inputs(kernel, choice, s)))
    const again = inputs(kernel, choice, { ...s, values })
    const wanted = compiled.bindOnHost(
      ...flatInputs({
        ...again,
        tensors: {
          ...again.tensors,
          ...(kernel === 'sample' ? { V: inputs(kernel, choice, s).tensors!.V! } : {}),
        },
      }),
    )
    const check = async (): Promise<void> => {
      for (const b of wanted.kernel.buffers)
        if (b.role === 'in')
          expect([...prepared.executable.bound.arrays.get(b.name)!]).toEqual([...wanted.arrays.get(b.name)!])
      expect((await prepared.verify()).problems).toEqual([])
    }
    await prepared.set('A', values)
    await check()
    // By coordinates, in another order.
    const order = s.rows.map((_, e) => e).toReversed()
    const backwards = (x: Int32Array | Float32Array) => Array.from(order, (e) => x[e]!)
    await prepared.set('A', s.values)
    await prepared.set('A', coords([s.m, s.n], [backwards(s.rows), backwards(s.cols)], backwards(values)))
    await check()
    prepared.free()
  })

  each('ready-made parts give equal results', async ({ kernel, choice, compiled }, s) => {
    // Duplicates that add up to 0 would be elements of the tensor, and padding of ready-made blocks.
    const whole = inputs(kernel, choice, { ...s, values: s.values.map(Math.abs) })
    const bound = compiled.bindOnHost(...flatInputs(whole))
    const k = bound.kernel
    const tensors: Record<string, StoredTensor> = {}
    for (const b of k.buffers) {
      if (b.role === 'out' || b.table || b.name === 'B' || b.name === 'X' || b.name === 'Y') continue
      const { levels } = bound.storages.get(b.name)!
      const arrays: Record<string, Record<string, Int32Array>> = {}
      for (const a of b.axes) {
        const { indptr, indices, mask } = levels.get(a)!
        if (indptr || indices || mask)
          arrays[a] = { ...(indptr && { indptr }), ...(indices && { indices }), ...(mask && { mask }) }
      }
      const shape = b.axes.map((a) => levels.get(a)!.extent)
      tensors[b.name] = { kind: 'stored', shape, arrays, values: bound.arrays.get(b.name)!, dtype: 'f32' }
    }
    const given = { ...whole.tensors }
    delete given.A
    delete given.V
    for (const b of k.buffers) if (b.table && !(b.name in given)) given[b.name] = bound.arrays.get(b.name)!
    const again = await compiled.bind({ m: s.m, n: s.n, ...given, ...tensors })
    for (const [name, values] of bound.arrays)
      expect([name, ...again.executable.bound.arrays.get(name)!]).toEqual([name, ...values])
    const first = await compiled(...flatInputs(whole))
    await again.run()
    for (const [name, t] of Object.entries(await again.outputs())) {
      // An element that is 0 in a block is none of the tensor's when only the arrays are known.
      const held = (x: typeof t): Map<string, number> =>
        new Map(
          [...x.values!].flatMap((v, e) =>
            v === 0 ? [] : [[x.kind === 'coords' ? x.coords.map((c) => c[e]).join() : String(e), v] as const],
          ),
        )
      expect(held(t)).toEqual(held(first[name]!))
    }
    again.free()
  })
})

const exact = async (kernel: Kernel, given: RunInputs): Promise<void> => {
  const compiled = await kernel.build(device)
  const prepared = await compiled.bind(...flatInputs(given))
  expect(await prepared.verify()).toMatchObject({ problems: [], maxAbsoluteError: 0 })
  prepared.free()
  compiled.release()
}

describe('examples', () => {
  const s: Sample = {
    m: 5,
    n: 7,
    d: 2,
    rows: Int32Array.of(0, 0, 0, 1, 2, 2, 2, 2, 2, 4, 0),
    cols: Int32Array.of(5, 1, 3, 0, 0, 1, 2, 3, 6, 6, 5),
    values: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    rowList: Int32Array.of(0, 2, 5),
    colList: Int32Array.of(0, 7),
    mask: [],
  }

  test('formats of parts', async () => {
    for (const name of ['multiply', 'sample', 'scale']) {
      const nested = program.kernel(name).as('A', 'band(1, 1) + csr').as('A_csr', 'hyb', 2, 1)
      await exact(nested, inputs(name, ['csr'], s))
      const compiled = await nested.build(device)
      const [report] = reportOf(compiled.bindOnHost(...flatInputs(inputs(name, ['csr'], s))))
      expect(report!.formats).toEqual(['band(1, 1) + csr', 'hyb(2, 1)'])
      expect(report!.parts.map((p) => p.buffer)).toEqual([
        'A_band',
        'A_csr_p0_w1',
        'A_csr_p0_w2',
        'A_csr_p1_w1',
        'A_csr_p1_w2',
      ])
      expect(report!.stored).toBe(10)
    }
  })

  test('the values of the named tensor select the part', async () => {
    const named = program.kernel('sample').as('V', 'coo where (top(1 by i)) + csr')
    await exact(named, inputs('sample', ['csr'], s))
    const bound = (await named.build(device)).bindOnHost(...flatInputs(inputs('sample', ['csr'], s)))
    const largest = reportOf(bound).find((t) => t.tensor === 'V')!.parts[0]!
    expect(largest).toMatchObject({ label: 'coo', rows: 4, stored: 4 })
    // Row 0 of V holds 4 at column 3, and 2 + 12 at column 5; coordinates of A alone count as 0.
    const { values, coords: columns } = toCoords(
      bound.storages.get('V_coo')!,
      bound.arrays.get('V_coo')!,
      'f32',
    )
    expect([...columns[1]!].slice(0, 1)).toEqual([5])
    expect(values![0]).toBe(14)
    // An output has no values: what the first tensor holds counts as 1, what only the others hold as 0.
    const made = program.kernel('sample').as('O', 'coo where (top(1 by i)) + csr')
    const first = coords([5, 7], [[0], [5]], [2])
    const given = inputs('sample', ['csr'], s)
    const one = { ...given, tensors: { ...given.tensors, A: first } }
    await exact(made, one)
    const split = (await made.build(device)).bindOnHost(...flatInputs(one))
    const chosen = toCoords(split.storages.get('A_coo')!, split.arrays.get('A_coo')!, 'f32')
    expect([chosen.coords[1]![0], chosen.values![0]]).toEqual([5, 2])
  })

  test('a format of some dimensions of a tensor with ascending entries', async () => {
    const layers = await load(`${FORMATS}
    kernel layers(p: size, m: size, n: size) {
      axis f = dense_fixed(p)
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: f32[f, i, j] in
      buffer y: f32[f, i] out
      iterate sum [f, i, j] as SSR { y[f, i] += A[f, i, j] }
    }`)
    const A = coords(
      [2, 2, 3],
      [
        [0, 0, 1, 1, 1],
        [0, 1, 0, 0, 1],
        [0, 2, 0, 1, 2],
      ],
      [1, 2, 3, 4, 5],
    )
    const kernel = layers.kernel().as('A', 'hyb', 1, 1)
    await exact(kernel, { tensors: { A } })
    // One row has two columns, the other one: an element for each of two layers.
    const bound = (await kernel.build(device)).bindOnHost({ A })
    expect(['A_w1', 'A_w2'].map((part) => bound.storages.get(part)!.size)).toEqual([2, 4])
  })

  test('random lists and sets', async () => {
    for (const format of ['vbr', 'chosen'])
      await exact(program.kernel('scale').as('A', format), { params: { m: 20, n: 30 }, seed: 4 })
  })
})
