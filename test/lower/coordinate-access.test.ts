/** Reading tensors at coordinates other than their iterators': presence, duplicates, order. */
import { expect, test } from 'vitest'
import { coords, dense, devices, load } from '../../src/node.ts'
import { agreeOnAll } from '../properties/agree.ts'

const TEXT = (axes: string): string => `
kernel read(m: size, n: size, q: size) {
  ${axes}
  axis k = dense_fixed(q)
  buffer A: i32[i, j] in fill -1
  buffer R: i32[k] in
  buffer S: i32[k] in
  buffer out_: i32[k] out
  iterate look [k] as S { out_[k] = A[R[k], S[k]] }
}`

const STRUCTURES = {
  csr: 'axis i = dense_fixed(m)\n axis j = sparse_variable(i, n)',
  dcsr: 'axis i = sparse_variable(m)\n axis j = sparse_variable(i, n)',
  ell: 'axis i = dense_fixed(m)\n axis j = sparse_fixed(i, n, 3)',
  coo: 'axis i = sparse_variable(m) nonunique\n axis j = sparse_fixed(i, n, 1)',
  'rows in pieces': 'axis i = sparse_variable(m) nonunique\n axis j = sparse_fixed(i, n, 2)',
  'dense rows': 'axis i = sparse_variable(m)\n axis j = dense_fixed(i, n)',
  'dense over dense': 'axis i = dense_fixed(m)\n axis j = dense_fixed(i, n)',
  bitmap: 'axis i = sparse_variable(m)\n axis j = bitmap(i, 5)',
  'unordered rows': 'axis i = dense_fixed(m)\n axis j = sparse_variable(i, n) unordered',
}

for (const [name, axes] of Object.entries(STRUCTURES))
  test(`${name}: an absent or impossible coordinate reads the fill value`, async () => {
    const program = await load(TEXT(axes))
    const rows = [0, 0, 0, 2, 2, 3]
    const columns = [1, 3, 4, 0, 4, 2]
    const values = [10, 11, 12, 13, 14, 15]
    const at: [number, number][] = []
    for (let r = -1; r <= 5; r++) for (let c = -1; c <= 5; c++) at.push([r, c])
    const want = at.map(([r, c]) => {
      const e = rows.findIndex((x, k) => x === r && columns[k] === c)
      return e < 0 ? -1 : values[e]!
    })
    for (const device of [await devices.cpu(), await devices.webgpu()]) {
      const compiled = await program.kernel().build(device)
      const { out_ } = await compiled({
        A: coords([4, 5], [rows, columns], Int32Array.from(values)),
        R: Int32Array.from(at, (x) => x[0]),
        S: Int32Array.from(at, (x) => x[1]),
        n: 5,
      })
      expect([...out_!.values!]).toEqual(want)
      await device.dispose()
    }
  })

test('a read whose indices cancel stays within its range condition', async () => {
  const k = (
    await load(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  axis one = dense_fixed(1)
  buffer X: f32[i, one] in
  buffer y: f32[i, f] out
  iterate all [i, f] as SS { if (0 - i >= 0 and 0 - i < 1) { y[i, f] = X[i, 0 - i] } }
}`)
  ).kernel()
  for (const values of [[], [1, 2]])
    await agreeOnAll(k.compilation, {
      tensors: { X: dense([values.length, 1], Float32Array.from(values)) },
      params: { n: 2 },
    })
})
