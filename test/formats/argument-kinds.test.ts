/** One name among the data is a list or a set, wherever a composition is written. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coords, load, SptError } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { CSR, ROW_SUMS, segmentsOfRows } from './programs.ts'

const TEXT = `${CSR}${segmentsOfRows('segments_of')}format masked(s: set) over (i, j) {
  part csr where (held(s))
  part rest = csr
}
${ROW_SUMS}`
const name = fc.constantFrom('p', 'q', 'r')
const use = (kind: 'list' | 'set', text: (n: string) => string) =>
  name.map((n) => ({ kind, name: n, text: text(n) }))
type Use = { readonly kind: 'list' | 'set'; readonly name: string; readonly text: string }
const formats = fc.oneof(
  fc.constant(null),
  use('list', (n) => `segments_of(${n})`),
  use('set', (n) => `masked(${n})`),
)
const conditions = fc.oneof(
  use('set', (n) => `held(${n})`),
  use('list', (n) => `find(${n}, i) == 1`),
  use('list', (n) => `${n}[0] == 0`),
)
const parts = fc.array(fc.tuple(formats, fc.array(conditions, { minLength: 1, maxLength: 2 })), {
  minLength: 1,
  maxLength: 3,
})

const refused = (work: () => unknown): string | null => {
  try {
    work()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.message.split('\n')[0]!
  }
  return null
}

describe('a composition in place', () => {
  it('reads lists of the data in its conditions as a declared composition does', async () => {
    const program = await load(`${CSR}format declared(z: list) over (i, j) {
  part few = csr where (z[i] + z[find(z, i)] > 2)
  part csr
}`)
    const matrix = coords(
      [4, 2],
      [
        [0, 1, 3],
        [0, 1, 1],
      ],
      Float32Array.of(1, 2, 3),
    )
    const [declared, written] = ['declared(z)', 'csr where (z[i] + z[find(z, i)] > 2) + csr'].map((text) =>
      program.format(text).convert(matrix, { z: [0, 1, 3, 4] }),
    )
    const values = [declared, written].map((t) => t!.parts.map((p) => [...p.tensor.values!]))
    expect(values).toEqual([
      [[3], [1, 2]],
      [[3], [1, 2]],
    ])
  })

  it('rejects one name that is passed as a list and as a set', async () => {
    const program = await load(TEXT)
    fc.assert(
      fc.property(parts, (drawn) => {
        const text = `${drawn.map(([f, where]) => `${f?.text ?? 'csr'} where (${where.map((c) => c.text).join(' and ')})`).join(' + ')} + csr`
        const uses = drawn.flatMap(([f, where]): Use[] => [...(f ? [f] : []), ...where])
        const both = ['p', 'q', 'r'].filter(
          (n) => new Set(uses.flatMap((u) => (u.name === n ? u.kind : []))).size > 1,
        )
        const said = both.map((n) => `format/argument-kind: ${n} is passed as a list and as a set`)
        for (const found of [
          refused(() => program.format(text)),
          refused(() => program.kernel().as('A', text)),
        ])
          if (both.length === 0) expect(found).toBeNull()
          else expect(said).toContain(found)
      }),
      { numRuns: runs(60) },
    )
  })
})
