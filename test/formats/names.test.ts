/** A kernel's axes and sizes may have the names of a format's parameters, dimensions and axes. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isName } from '../../src/ast/nodes/names.ts'
import { coords, type Device, devices, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'

const FILES = ['formats', 'formats-composed']
const USES = [
  'csr',
  'csc',
  'coo',
  'ell(3)',
  'bsr(2)',
  'sell(2, 4)',
  'dia',
  'sr_bcrs(2, 2)',
  'hyb(2, 2)',
  'hyb(3, 3)',
  'hyb_pieces(2, 2)',
  'dense_blocks(2, 0.5)',
  'band_rest(1, 1)',
  'rows_by_length(2)',
  'column_ranges(2)',
  'column_ranges_by_length(2)',
  'band(1, 1) + csr',
]
/** What the packaged formats call anything. */
const words = [
  ...new Set(
    FILES.flatMap((f) => [
      ...readFileSync(new URL(`../../kernels/${f}.spt`, import.meta.url), 'utf8')
        .replace(/\/\/.*/g, '')
        .matchAll(/\b[a-z]\w{0,4}\b/g),
    ]).map(([word]) => word),
  ),
].filter(isName)

let device: Device
beforeAll(async () => {
  device = await devices.cpu()
})
afterAll(() => device.dispose())

test.each(USES)('%s', async (use) => {
  const at = [
    [0, 0, 0, 1, 2, 2, 4, 4],
    [0, 1, 2, 1, 0, 3, 2, 3],
  ]
  const values = [1, 2, 3, 4, 5, 6, 7, 8]
  const firsts = Array.from({ length: Math.ceil(words.length / 4) }, (_, k) => 4 * k)
  for (const n of sample(firsts, 4)) {
    const [i, j, m, k] = [0, 1, 2, 3].map((d) => words[(n + d) % words.length]!)
    const text = `${FILES.map((f) => `import "sparsetile/kernels/${f}.spt"\n`).join('')}
      kernel row_sums(${m}: size, ${k}: size) {
        axis ${i} = dense_fixed(${m})
        axis ${j} = sparse_variable(${i}, ${k})
        buffer A: f32[${i}, ${j}] in
        buffer C: f32[${i}] out
        iterate sum_of_rows [${i}, ${j}] as SR { C[${i}] += A[${i}, ${j}] }
      }`
    const compiled = await (await load(text)).kernel().as('A', use).build(device)
    const { C } = await compiled({ A: coords([5, 4], at, values, 'f32') })
    expect([...C!.values!], `${i}, ${j}, ${m}, ${k}`).toEqual([6, 4, 11, 0, 15])
    compiled.release()
  }
})
