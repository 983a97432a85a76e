import { describe, expect, it } from 'vitest'
import { provenance } from '../../src/formats/proof/provenance.ts'
import { written } from './user-formats.ts'

const BASE = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format upper over (i, j) {
  axis io = dense_fixed(i)
  axis d = sparse_variable(io, j)
  map (i, j) -> (i, j - i)
  inverse (io, d) -> (io, io + d)
}
`
const of = (text: string, ...args: readonly (number | string)[]) => provenance(written(BASE + text, ...args))

describe('provenance', () => {
  it('of one format: a single part without conditions', () => {
    expect(of('format x over (i, j) { part csr }')).toEqual({
      parts: [
        {
          label: '',
          format: 'csr',
          inverse: 'proved',
          range: 'proved',
          text: 'csr: map and inverse agree and coordinates are in range (proved)',
        },
      ],
      nodes: [],
    })
  })

  it('states for every node how its parts are distinguished', () => {
    const { nodes } = of(`format x over (i, j) {
      partition j into 2 {
        bucket i by length into 1, 4 as w {
          part a = csr where (value > 0)
          part b = csr where (value <= 0)
        }
      }
    }`)
    expect(nodes).toHaveLength(7)
    expect(nodes[0]).toEqual({
      node: 'partition j into 2',
      parts: ['p0_w1_a', 'p0_w1_b', 'p0_w4_a', 'p0_w4_b', 'p1_w1_a', 'p1_w1_b', 'p1_w4_a', 'p1_w4_b'],
      disjoint: 'construction',
      cover: 'construction',
      text: 'partition j into 2: parts are disjoint and hold every coordinate (by construction)',
    })
    expect(nodes[1]).toMatchObject({
      disjoint: 'construction',
      cover: 'checked',
      text: 'bucket i by length into 1, 4: parts are disjoint (by construction) and hold every coordinate (checked while building)',
    })
    // A value may be NaN.
    expect(nodes[2]).toMatchObject({
      node: 'a = csr + b = csr',
      parts: ['p0_w1_a', 'p0_w1_b'],
      disjoint: 'proved',
      cover: 'checked',
    })
  })

  it('includes the conditions on the path to a part', () => {
    const range = (where: string): string[] =>
      of(`format x over (i, j) { part upper where (${where}) part csr }`).parts.map((p) => p.range)
    expect(range('i <= j')).toEqual(['proved', 'proved'])
    expect(range('j - i >= 3')).toEqual(['proved', 'proved'])
    expect(range('i <= j and value > 0')).toEqual(['proved', 'proved'])
    const nested = (outer: string): string =>
      of(`format inner over (i, j) { part upper where (value > 0) part csr }
        format x over (i, j) { part inner where (${outer}) part csr }`).parts[0]!.range
    expect(nested('i < j')).toBe('proved')
    const rest = of(`format x over (i, j) { part csr where (i >= j) part upper }`).parts[1]!
    expect(rest.range).toBe('proved')
  })

  it('names parts with labels', () => {
    const { parts } = of('format x over (i, j) { part low = csr where (i >= j) part high = upper }')
    expect(parts.map((p) => p.text.split(':')[0])).toEqual(['low, csr', 'high, upper'])
  })
})
