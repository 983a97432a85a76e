/** Buffers that steps make are named by texts of schedules before they are there. */
import { expect, test } from 'vitest'
import { walkStmts1 } from '../../src/ir/coordinates/stage1-tree.ts'
import { type Kernel, load, SptError } from '../../src/node.ts'
import { scheduleText } from '../../src/search.ts'
import { sample } from '../support/cases.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer H: f32[i, q] local
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate take [i, q] as SS { H[i, q] = max(A[i, q], 0.0) }
  iterate mul [i, q, j] as SRS { C[i, j] += H[i, q] * B[q, j] }
}
`
const kernel = async (more = ''): Promise<Kernel> => (await load(TEXT + more)).kernel()

/** Of a text of these steps, as it is read. */
const codeOf = (steps: string): Promise<string | null> =>
  kernel(`schedule product.s { ${steps} }`).then(
    () => null,
    (e: SptError) => e.diagnostics[0]!.code,
  )

const MADE = [
  ['H as bsr(2) live in place'],
  ['H as bsr(2) live'],
  ['H as panels(2, 2) live capacity 3'],
  ['H as panels(2, 2) live capacity 3 in all fuse (mul.io, mul.go) -> g'],
  ['H as panels(2, 2) live in place for mul'],
  ['H as bsr(2) where (i < 4) + csr live'],
  ['H as bsr(2) where (i < 4) + csr live in place capacity 3'],
  ['H as panels(2, 2) where (i < 4) + panels(4, 1) live in place'],
  ['H as csr live in place'],
  ['B as csr where (i < 4) + bsr(2)'],
] as const
test.each(sample(MADE, 12))('of %s', async (steps) => {
  const made = (await kernel(`schedule product.s { ${steps} }`)).schedule('s')
  const { buffers, body } = made.compilation.kernel
  expect(buffers.length).toBeGreaterThan(4)
  const loops: string[] = []
  walkStmts1(body, (s) => {
    if (s.kind === 'iterate') loops.push(...s.iters.map((x) => `${s.name}.${x.name}`))
  })
  for (const { name } of buffers) {
    expect([name, await codeOf(`${steps} atomic ${name}`)]).toEqual([name, null])
    for (const loop of loops) {
      let cached: Kernel
      try {
        cached = made.cacheWrite(name, loop, 'register')
      } catch (e) {
        expect(e).toBeInstanceOf(SptError)
        continue
      }
      const again = (await kernel(scheduleText(cached, 'found'))).schedule('found')
      expect(again.show(2)).toBe(cached.show(2))
      break
    }
  }
})

test('other names are unknown', async () => {
  for (const name of ['marks', 'marks_X', 'marksH_2', 'counts_HH', 'jo_of_X', 'offset', 'H2', 'xH_'])
    expect([name, await codeOf(`atomic ${name}`)]).toEqual([name, 'check/unknown-buffer'])
})
