/** Choices by tensors that a device has. */

import { describe, expect, test, vi } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import { isStored } from '../../src/ir/coordinates/axis.ts'
import { type Built, coords, dense, load, stored } from '../../src/node.ts'
import { complaint } from '../api/support.ts'
import { asHardware } from '../support/hardware.ts'
import { DEVICES, opened } from './devices.ts'

const TEXT = `
format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.blocks(b) { A as bsr(b) }
schedule product.plain { reorder (i, f, j) }
schedule product.auto choose {
  when (longest(j) > 2 and nnz(A) == 5) blocks(d - 1)
  otherwise plain
}
`
const indptr = Int32Array.of(0, 3, 3, 5)
const indices = Int32Array.of(0, 2, 3, 1, 2)
const A = stored([3, 4], { j: { indptr, indices } }, Float32Array.of(1, 2, 3, 4, 5))
const B = dense(
  [4, 3],
  Float32Array.from({ length: 12 }, (_, k) => k),
)

describe.each(DEVICES)('on $name', ({ open }) => {
  // A choice, and no plain schedule of software adapters.
  const on = opened(async () => asHardware(await open()))

  test('resident arrays: their offsets are downloaded once, and the others stay', async () => {
    const kernel = (await load(TEXT)).kernel()
    const { source } = kernel.compilation
    const axes = ['i', 'j'].map((a) => source.axes.find((x) => x.name === a)!).filter(isStored)
    const there = await upload(on.device, A, axes)
    const compiled = await kernel.build(on.device)
    expect(compiled.dispatch).not.toBe(null)
    const download = vi.spyOn(on.device, 'download')
    const inputs = { tensors: { B }, resident: { A: there } }
    const chosen = await compiled.choose(...flatInputs(inputs))
    const { selection } = chosen
    expect(download).toHaveBeenCalledTimes(1)
    expect(download.mock.calls[0]![1]).toBe(4 * indptr.length)
    download.mockRestore()
    expect([selection!.text, selection!.values]).toEqual([
      'blocks(2)',
      { 'longest(j)': 3, 'nnz(A)': 5, d: 3 },
    ])
    const parts = await convertForKernel(chosen, 'A', there)
    const prepared = await bindResident(chosen, { A: parts, B })
    await prepared.run()
    expect([...(await prepared.get('C')).values!]).toEqual([39, 45, 51, 0, 0, 0, 42, 51, 60])
    prepared.free()
    parts.free()
    there.free()
    compiled.release()
  })

  test('resident coordinates do not determine statistics of rows: the message requests numbers', async () => {
    const compiled = (await (await load(TEXT)).kernel().build(on.device)) as Built
    const there = await upload(
      on.device,
      coords(
        [3, 4],
        [
          [0, 0, 0, 2, 2],
          [0, 2, 3, 1, 2],
        ],
        null,
        'f32',
      ),
    )
    const inputs = { tensors: { B }, resident: { A: there } }
    expect(await complaint(() => compiled.choose(...flatInputs(inputs)))).toMatch(
      /^choose\/unknown-statistic.* longest\(j\)/,
    )
    const statistics = { 'longest(j)': 3, 'nnz(A)': 5 }
    expect((await compiled.choose(...flatInputs({ ...inputs, statistics }))).selection!.text).toBe(
      'blocks(2)',
    )
    there.free()
    expect(await complaint(() => compiled.choose(...flatInputs({ ...inputs, statistics })))).toMatch(
      /^device\/freed/,
    )
    compiled.release()
  })
})
