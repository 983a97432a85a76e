/** Random compositions as text: parts in parts, over the formats of the kernels' files. */
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import type { Choices } from './choices.ts'

/** Formats that hold anything, and what a part may be made of. */
const ANY = [
  'csr',
  'coo',
  'dcsr',
  'csc',
  'ell',
  'bsr(2)',
  'sell(2, 4)',
  'rows_ell(2)',
  'pieces_ell(2)',
] as const
const MORE = [
  'sr_bcrs(2, 2)',
  'dia',
  'bitmap_blocks',
  'dbsr(3)',
  'dcsc',
  'ragged',
  'banded',
  'nm(2, 2)',
  'nm_packed(2, 2)',
  'csr_panels(3)',
] as const
const SOME = ['band(1, 1)', 'strided(2)', 'band(0, 0)'] as const
const CONDITIONS = [
  'i < 2',
  '(i + j) % 2 == 0',
  'count(j by i) > 1',
  'density(2) >= 0.5',
  'top(1 by i)',
  'top(2)',
  'rank(j by i) < 2',
  'j <= i',
  'value > 0.0',
  'count(i by j) == 1 or i == j',
] as const

/** `count` declarations `composed0`, `composed1`, …: the later, the more there is in them. */
export const compositions = (c: Choices, count: number): string =>
  Array.from({ length: count }, (_, k) => {
    const depth = k < count / 2 ? 1 : 2
    return `format composed${k} over (i, j) {\n${rules(c, depth, '  ').join('\n')}\n}`
  }).join('\n')

function rules(c: Choices, depth: number, indent: string, widths = false): string[] {
  const kind = c.pick(
    depth === 0 || widths ? (['cases'] as const) : (['cases', 'partition', 'bucket'] as const),
  )
  const inner = `${indent}  `
  if (kind === 'partition') {
    const named = c.chance(30) ? ` as q${indent.length}` : ''
    return [
      `${indent}partition ${c.pick(['j', 'i'])} into ${c.pick([2, 3, 1])}${named} {`,
      ...rules(c, depth - 1, inner),
      `${indent}}`,
    ]
  }
  if (kind === 'bucket') {
    const split = c.chance(60)
    const to = split ? c.pick(['1, 2', '2', '1 .. 4']) : c.pick(['2, 16', '1 .. 16'])
    return [
      `${indent}bucket ${c.pick(['i', 'i', 'j'])} by length into ${to} as width${split ? ' split' : ''} {`,
      ...rules(c, depth - 1, inner, true),
      `${indent}}`,
    ]
  }
  const leaf = (): string =>
    widths && c.chance(70)
      ? c.pick(['rows_ell(width)', 'pieces_ell(width)'])
      : c.pick([...ANY, ...ANY, ...MORE])
  const chosen = Array.from({ length: c.below(3) }, (_, k) =>
    c.chance(20)
      ? `${indent}part a${k} = ${c.pick(SOME)}`
      : `${indent}part a${k} = ${leaf()} where (${c.pick(CONDITIONS)})`,
  )
  return [...chosen, `${indent}part ${leaf()}`]
}

/** Arguments: small numbers, a half, and the names under which `givenTo` has lists and sets. */
export const argumentsFor = (c: Choices, format: AnyFormat): (number | string)[] =>
  format.params
    .filter((p) => !p.measured)
    .map((p) => {
      if (p.kind === 'integer') return c.pick([2, 3, 1])
      if (p.kind === 'real') return 0.5
      return p.kind === 'set' ? 'mask' : p.name
    })
