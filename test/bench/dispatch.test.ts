/** Candidates whose schedule is chosen by data. */
import { afterAll, describe, expect, test } from 'vitest'
import { randomBlocks, rowsOf } from '../../bench/gpu/blocks.ts'
import { fieldOf, parseCandidate } from '../../bench/gpu/candidates.ts'
import { bindRows, elementsOf } from '../../bench/gpu/contestants.ts'
import { inputs, structured } from '../../bench/gpu/declared.ts'
import { Formats } from '../../bench/gpu/formats.ts'
import type { Csr } from '../../bench/gpu/matrix.ts'
import { type Conversion, OurDevice, type Ready } from '../../bench/gpu/ours.ts'
import { choose, normals } from '../../bench/gpu/random.ts'
import { blockSizes } from '../../bench/gpu/suites/block-cases.ts'
import { products } from '../../bench/gpu/suites/products.ts'
import { samples } from '../../bench/gpu/suites/samples.ts'
import { ExpectedSoftmax } from '../../bench/gpu/suites/softmax.ts'
import { vectors } from '../../bench/gpu/suites/vectors.ts'
import { packageFile } from '../../bench/support.ts'
import type { CoordTensor, StoredTensor } from '../../src/node.ts'
import { dense, devices } from '../../src/node.ts'
import { Folder } from '../cli/support.ts'

const SIZE = 32

test('the selected schedule is converted to its format on the device, for each list of arguments', async () => {
  const device = new OurDevice(await devices.cpu())
  const expected: number[][] = []
  const found: number[][] = []
  for (const b of [8, 16, 32]) {
    const { standard, candidates } = fieldOf(`block-sparse-${b}`, [], { b })
    const candidate = candidates.find((c) => c.text === standard)!
    expect([candidate.schedule, candidate.args]).toEqual(['auto', [b]])
    const { csr, bits } = rowsOf(randomBlocks(SIZE, b, 0.5, 3))
    const asked = await device.ready(candidate)
    expect(asked.compiled.dispatch).not.toBe(null)
    const [A, B] = inputs(asked.source)
    const first = structured(asked.source, [SIZE, SIZE], { ...csr }, bits, 'f16')
    // The unit matrix.
    const unit = new Uint16Array(SIZE * SIZE)
    for (let k = 0; k < SIZE; k++) unit[k * SIZE + k] = 0x3c00
    const rest = { [B!.name]: dense([SIZE, SIZE], unit, 'f16') }
    const ready = await device.decided(asked, { [A!.name]: first, ...rest })
    expect(ready.compiled.dispatch).toBe(null)
    const built = await device.build(ready, first)
    const run = await device.prepare(ready, built, first, rest)
    expect(run.facts).toMatchObject({ chosen: `cpu(${b})`, because: 'cpu' })
    expect(Object.keys(run.facts)).toContain('build ms')
    found.push(Array.from(await run.values(run.output.name), Number))
    const rows = new Array<number>(SIZE * SIZE).fill(0)
    for (let r = 0; r < SIZE; r++)
      for (let e = csr.indptr[r]!; e < csr.indptr[r + 1]!; e++) rows[r * SIZE + csr.indices[e]!] = bits[e]!
    expected.push(rows)
    run.free()
    built.parts?.free()
    // Asked again, it is compiled already.
    expect((await device.decided(asked, { [A!.name]: first, ...rest })).compiled.code).toBe(
      ready.compiled.code,
    )
  }
  expect(found).toEqual(expected)
  await device.close()
})

test('block sizes selected by name', () => {
  expect(blockSizes([], [16, 32])).toEqual([16, 32])
  expect(blockSizes(['cora', 'b=8', 'b=128'], [16, 32])).toEqual([8, 128])
  expect(blockSizes(['cora'], [16, 32])).toEqual([16, 32])
})

/** Notes what is built. */
class Builder extends OurDevice {
  readonly built: string[] = []

  override build(ready: Ready, tensor: CoordTensor | StoredTensor): Promise<Conversion> {
    this.built.push(ready.chosen?.text ?? ready.candidate.schedule)
    return super.build(ready, tensor)
  }
}

/** Rows of 0, 1, … elements, fewer than `lengths`, and again. */
function matrix(lengths = 5): Csr {
  const [rows, columns] = [9, 7]
  const of = Array.from({ length: rows }, (_, r) => [...choose(r % lengths, columns, r)])
  const indptr = new Int32Array(rows + 1)
  for (const [r, row] of of.entries()) indptr[r + 1] = indptr[r]! + row.length
  const indices = Int32Array.from(of.flat())
  return { name: 'small', rows, columns, indptr, indices, values: normals(indices.length) }
}

describe('matrices by rows, in the format of the selected schedule', () => {
  const folder = new Folder()
  afterAll(() => folder.remove())
  const file = folder.file(
    'by-width.spt',
    `import ${JSON.stringify(packageFile('kernels/spmm.spt'))}
import ${JSON.stringify(packageFile('kernels/spmv.spt'))}
import ${JSON.stringify(packageFile('kernels/sddmm.spt'))}
import ${JSON.stringify(packageFile('kernels/softmax.spt'))}
schedule spmm.by_width choose {
  when (d == 4) ell
  when (d == 8) hyb(1, 2)
  otherwise cpu
}
schedule spmv.by_width choose {
  when (longest(j) > 100) cpu
  otherwise ell
}
schedule sddmm.by_width choose {
  when (d == 4) hyb(1, 2)
  when (d == 8) edges(8, 4, 1, 2)
  otherwise cpu
}
schedule softmax.by_width choose {
  when (longest(j) <= 2) ell
  otherwise hyb(1, 1)
}
`,
  )
  test.each([
    ['spmm', products, ['ell', 'hyb(1, 2)', 'cpu', 'ell', 'hyb(1, 2)']],
    ['spmv', vectors, ['ell', 'ell', 'ell', 'ell', 'ell']],
    ['sddmm', samples, ['hyb(1, 2)', 'edges(8, 4, 1, 2)', 'cpu', 'hyb(1, 2)', 'edges(8, 4, 1, 2)']],
  ])('%s: each is built on the device once, and the results are right', async (kernel, operation, chosen) => {
    const device = new Builder(await devices.cpu())
    const formats = new Formats()
    const A = matrix()
    const seen: string[] = []
    for (const width of [4, 8, 12, 4, 8]) {
      const candidate = parseCandidate(`${file}:${kernel}.by_width`)
      const run = await operation.of(A, width).ours(device, candidate, formats).enter()
      expect(await run.check()).toMatchObject({ ok: true })
      seen.push(String(run.facts?.chosen))
      expect(Object.keys(run.facts ?? {})).toEqual([
        ...(run.facts?.chosen === 'cpu' ? [] : ['build ms', 'bytes']),
        'chosen',
        'because',
      ])
      run.free()
    }
    expect(seen).toEqual(chosen)
    expect(device.built).toEqual([...new Set(chosen)])
    // Each is compiled once, which is noted.
    const { text } = parseCandidate(`${file}:${kernel}.by_width`)
    expect(device.preparations.map((p) => [p.candidate, p.chosen])).toEqual(
      [...new Set(chosen)].map((c) => [text, c]),
    )
    for (const { loading, emission, compilation, launches } of device.preparations) {
      for (const ms of [loading, emission, compilation]) expect(ms).toBeGreaterThan(0)
      expect(launches).toBeGreaterThan(0)
    }
    await formats.free()
    await device.close()
  })
  test.each([
    ['ell', 3],
    ['hyb(1, 1)', 5],
  ])('a softmax in %s: padding is no element', async (chosen, lengths) => {
    const device = new Builder(await devices.cpu())
    const formats = new Formats()
    const A = matrix(lengths)
    const expected = new ExpectedSoftmax(A)
    const candidate = parseCandidate(`${file}:softmax.by_width`)
    const run = await bindRows(device, candidate, formats, A, [])
    expect(run.facts).toMatchObject({ chosen })
    expect(Object.keys(run.facts)).toContain('build ms')
    expect(expected.check(await elementsOf(run, device, formats, A))).toMatchObject({ ok: true })
    run.free()
    await formats.free()
    await device.close()
  })
})
