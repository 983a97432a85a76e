/** Texts of spaces, drawn from numbers, with their points listed by other means than walking through them. */

import type { Point } from '../../src/search/types.ts'
import type { Choices } from '../support/choices.ts'
import { PRODUCT } from '../support/product.ts'

/** The kernel that spaces are drawn for, with formats and schedules that they can name. */
export const KERNEL = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
${PRODUCT}schedule product.tiled(rows = 8, cols = 4) {
  split i by rows -> (io, ii)
  split f by cols -> (fo, fi)
}
schedule product.refused(by = 2) {
  split i by by -> (io, ii)
  reorder (j, io)
}
`

type Test = (values: Readonly<Record<string, number>>) => boolean
interface Condition {
  readonly text: string
  readonly holds: Test
  readonly numbers: readonly string[]
}
interface Option {
  readonly text: string
  readonly numbers: readonly string[]
  readonly where: Condition | null
  readonly body: readonly Item[]
}
type Item =
  | { readonly kind: 'step'; readonly text: string; readonly numbers: readonly string[] }
  | { readonly kind: 'options'; readonly name: string; readonly options: readonly Option[] }

export interface SpaceText {
  readonly text: string
  /** Facts that its conditions ask for. */
  readonly sizes: Readonly<Record<'m' | 'd', number>>
  readonly all: readonly Point[]
}

export function drawnSpaceText(c: Choices, name: string): SpaceText {
  const sizes = { m: c.between(1, 40), d: c.pick([4, 6, 8, 16]) }
  const numbers = Array.from({ length: c.between(1, 3) }, (_, k) => drawnNumber(c, k, sizes))
  const used = new Set<string>()
  const number = (): string => {
    const n = c.pick(numbers).name
    used.add(n)
    return n
  }
  const only = Array.from({ length: c.below(3) }, () => drawnCondition(c, numbers, sizes))
  const makers = { either: 0, use: 0 }
  const formats: readonly Option[] = c
    .shuffle(['ell', 'dcsr', `bsr(${number()})`, `hyb(1, ${number()})`])
    .slice(0, c.between(1, 3))
    .map((text) =>
      optionOf(
        text,
        maybe(c, () => drawnCondition(c, numbers, sizes)),
      ),
    )
  const hasFormat = c.chance(50)
  const body: Item[] = [
    ...(hasFormat ? [{ kind: 'options', name: 'F', options: formats } as const] : []),
    ...drawnBody(c, number, makers, () => drawnCondition(c, numbers, sizes)),
    // Each number has a step, so that none is decided for nothing.
    ...numbers
      .map(({ name }, k): Item => {
        return { kind: 'step', text: `split f by ${name} -> (x${k}, f)`, numbers: [name] }
      })
      .slice(0, c.chance(60) ? undefined : 0),
  ]
  const mentioned = mentionedIn(body)
  const declared = numbers.filter((n) => mentioned.has(n.name))
  const said = (w: Condition | null): boolean =>
    w === null || w.numbers.every((n) => declared.some((d) => d.name === n))
  const kept = only.filter(said)
  const clean = cleaned(body, said)
  const text = [
    `schedule product.${name} choose by search {`,
    ...(hasFormat ? [`  format F in ${formats.map((o) => optionText(o, said)).join(', ')}`] : []),
    ...declared.map((n) => `  ${n.name} ${n.text}`),
    ...kept.map((w) => `  only where (${w.text})`),
    ...clean.flatMap((x) => (x.kind === 'options' && x.name === 'F' ? ['  A as F'] : [`  ${itemText(x)}`])),
    '}\n',
  ].join('\n')
  return { text, sizes, all: listedPoints(clean, declared, kept) }
}

interface Drawn {
  readonly name: string
  readonly text: string
  readonly values: readonly number[]
  /** Only a name, which is no decision. */
  readonly isFixed?: true
}

function drawnNumber(c: Choices, k: number, sizes: SpaceText['sizes']): Drawn {
  const name = ['p', 'q', 'r'][k]!
  switch (c.below(5)) {
    case 4:
      return { name, text: 'in d / 2', values: [Math.floor(sizes.d / 2)], isFixed: true }
    case 0:
      return { name, text: 'in 1, 2 .. 8', values: [1, 2, 4, 8] }
    case 1:
      return { name, text: 'in 3 .. 10', values: [3, 6, 10] }
    case 2:
      return { name, text: 'from 1 to d / 2 by 3', values: range(1, Math.floor(sizes.d / 2), 3) }
    default:
      return { name, text: 'in 2, 4, 2^4', values: [2, 4, 16] }
  }
}

const range = (from: number, to: number, by: number): number[] =>
  Array.from({ length: Math.max(0, Math.floor((to - from) / by) + 1) }, (_, k) => from + k * by)

function drawnCondition(c: Choices, numbers: readonly Drawn[], sizes: SpaceText['sizes']): Condition {
  const [a, b] = [c.pick(numbers).name, c.pick(numbers).name]
  const bound = c.pick([2, 4, 8, 16])
  switch (c.below(4)) {
    case 0:
      return { text: `${a} * ${b} <= ${bound}`, holds: (v) => v[a]! * v[b]! <= bound, numbers: [a, b] }
    case 1:
      return { text: `d % ${a} == 0`, holds: (v) => sizes.d % v[a]! === 0, numbers: [a] }
    case 2:
      return {
        text: `m > ${bound} or ${a} < ${b}`,
        holds: (v) => sizes.m > bound || v[a]! < v[b]!,
        numbers: [a, b],
      }
    default:
      return { text: `cpu and ${a} != ${bound}`, holds: (v) => v[a] !== bound, numbers: [a] }
  }
}

const maybe = <T>(c: Choices, make: () => T): T | null => (c.chance(30) ? make() : null)

const numbersIn = (text: string): readonly string[] =>
  ['p', 'q', 'r'].filter((n) => new RegExp(`\\b${n}\\b`).test(text))

const optionOf = (text: string, where: Condition | null): Option => {
  return { text, numbers: numbersIn(text), where, body: [] }
}

function drawnBody(
  c: Choices,
  number: () => string,
  count: { either: number; use: number },
  condition: () => Condition,
  depth = 0,
): readonly Item[] {
  return Array.from({ length: c.below(3) }, (): Item => {
    switch (c.below(depth > 1 ? 2 : 4)) {
      case 0: {
        const text = c.pick([`unroll f by ${number()}`, 'unroll f by 2'])
        return { kind: 'step', text, numbers: numbersIn(text) }
      }
      case 1: {
        const name = `use${count.use++ === 0 ? '' : count.use}`
        const texts = [`tiled(${number()}, 2)`, `refused(${number()})`, 'tiled', `tiled(4, ${number()} * 2)`]
        const options = [...new Set(c.shuffle(texts).slice(0, c.between(1, 3)))]
        return { kind: 'options', name, options: options.map((t) => optionOf(t, maybe(c, condition))) }
      }
      default: {
        const name = `either${count.either++ === 0 ? '' : count.either}`
        const groups = Array.from({ length: c.between(1, 3) }, (_, k) => {
          const more = drawnBody(c, number, count, condition, depth + 1)
          // No two groups are the same text.
          const own: Item = { kind: 'step', text: `split j by ${k + 2} -> (j, y${name}${k})`, numbers: [] }
          return { where: maybe(c, condition), body: k === 0 && more.length === 0 ? [] : [own, ...more] }
        })
        return {
          kind: 'options',
          name,
          options: groups.map(({ where, body }) => ({ text: '', numbers: [], where, body })),
        }
      }
    }
  })
}

function mentionedIn(items: readonly Item[]): ReadonlySet<string> {
  return new Set(
    items.flatMap((x) =>
      x.kind === 'step' ? x.numbers : x.options.flatMap((o) => [...o.numbers, ...mentionedIn(o.body)]),
    ),
  )
}

/** Without conditions on numbers that nothing decides. */
const cleaned = (items: readonly Item[], said: (w: Condition | null) => boolean): readonly Item[] =>
  items.map((x) =>
    x.kind === 'step'
      ? x
      : {
          ...x,
          options: x.options.map((o) => ({
            ...o,
            where: said(o.where) ? o.where : null,
            body: cleaned(o.body, said),
          })),
        },
  )

const optionText = (o: Option, said: (w: Condition | null) => boolean): string =>
  `${o.text}${o.where && said(o.where) ? ` where (${o.where.text})` : ''}`

const groupText = (o: Option): string =>
  o.body.length === 0 ? '{ }' : `{ ${o.body.map(itemText).join('; ')} }`

function itemText(x: Item): string {
  if (x.kind === 'step') return x.text
  const isUse = x.name.startsWith('use')
  const options = x.options.map((o) => optionText(isUse ? o : { ...o, text: groupText(o) }, () => true))
  return `${isUse ? 'use' : 'either'} ${options.join(' or ')}`
}

const decided = (v: Readonly<Record<string, number>>, numbers: readonly Drawn[]) =>
  Object.fromEntries(Object.entries(v).filter(([name]) => !numbers.find((n) => n.name === name)?.isFixed))

/** All ways through the options, then all values of the numbers that they mention. */
function listedPoints(
  items: readonly Item[],
  numbers: readonly Drawn[],
  only: readonly Condition[],
): readonly Point[] {
  interface Way {
    readonly point: Point
    readonly numbers: readonly string[]
    readonly conditions: readonly Condition[]
  }
  const through = (way: Way, [first, ...rest]: readonly Item[]): readonly Way[] => {
    if (!first) return [way]
    if (first.kind === 'step') return through({ ...way, numbers: [...way.numbers, ...first.numbers] }, rest)
    return first.options.flatMap((o) => {
      const text = first.name.startsWith('either') ? groupText(o) : o.text
      const chosen: Way = {
        point: first.options.length > 1 ? { ...way.point, [first.name]: text } : way.point,
        numbers: [...way.numbers, ...o.numbers],
        conditions: o.where ? [...way.conditions, o.where] : way.conditions,
      }
      return through(chosen, o.body).flatMap((w) => through(w, rest))
    })
  }
  return through({ point: {}, numbers: [], conditions: only }, items).flatMap((way) => {
    const active = numbers.filter((n) => n.isFixed || way.numbers.includes(n.name))
    const conditions = way.conditions.filter((w) => w.numbers.every((n) => active.some((a) => a.name === n)))
    return active
      .reduce<readonly Readonly<Record<string, number>>[]>(
        (vs, n) => vs.flatMap((v) => n.values.map((x) => ({ ...v, [n.name]: x }))),
        [{}],
      )
      .filter((v) => conditions.every((w) => w.holds(v)))
      .map((v) => ({ ...way.point, ...decided(v, active) }))
  })
}
