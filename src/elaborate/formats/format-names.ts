/** Resolution of names, accesses and calls in the expressions of formats and compositions. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, load, variable } from '../../ir/expressions/expr.ts'
import type { FormatParam, FormatParamKind } from '../../ir/formats/format.ts'
import { QUERY_WORDS } from '../../ir/formats/queries.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { report } from '../diagnostics.ts'
import { converted, FUNCTIONS, type Names } from '../expressions/expressions.ts'
import { plain, type Typed } from '../expressions/type-conversion.ts'
import { type Declared, declare } from '../kernels/kernel-names.ts'
import type { FormatScope, ListAndSetParams, ListName, Numbers, SortNames } from './format-place.ts'
import { callAt, expectedNames, FORMAT_FUNCTIONS, integerAt, isGiven, queriesAt } from './format-place.ts'

export function namesAt(p: FormatScope): Names {
  const sizes = new Set<string | undefined>([
    ...p.dims.map((d) => p.size?.(d)),
    ...[...p.values.values()].flatMap((v) => (v.coordinate || !isWord(v.dtype) ? [] : [v.name])),
  ])
  const names: Names = {
    name: (e) => nameAt(p, e),
    access: (e) => accessAt(p, e, names),
    field: (e) => {
      const value = p.values.get(`${e.object.name}.${e.field.name}`)
      if (value) return plain(variable(value.name, value.dtype, e.span))
      return report('check/unknown-name', e.span, {
        message: `${e.object.name}.${e.field.name} is not allowed in ${p.what}`,
        expected: expectedNames(p),
      })
    },
    call: (e) => callAt(p, e, names),
    functions: [...FUNCTIONS, ...FORMAT_FUNCTIONS],
    real: 'f64',
    sizes: (name) => sizes.has(name),
  }
  return names
}

function nameAt(p: FormatScope, e: Ast.Name): Typed | null {
  const value = p.values.get(e.name)
  if (value) return plain(variable(value.name, value.dtype, e.span))
  const word = QUERY_WORDS.get(e.name)
  if (word?.takes === null) {
    const queries = queriesAt(p, e.name, e.span)
    const nothing = { list: '', set: '', of: [], by: [], dims: [], span: e.span }
    return queries && plain(word.expand(nothing, (q) => queries.add(q, e.span)))
  }
  const kind = p.given.kinds.get(e.name)
  if (kind === 'list' || kind === 'set')
    return report('check/not-a-number', e.span, {
      message: `${e.name} is a ${kind}, not a number`,
      expected:
        kind === 'list' ? `${e.name}[…], find(${e.name}, …) or segments(${e.name})` : `held(${e.name})`,
    })
  if (p.lists?.some((l) => l.name === e.name))
    return report('check/not-a-number', e.span, {
      message: `${e.name} is a list, not a number`,
      expected: `position(${e.name}) in a map, ${e.name}[…] in an inverse`,
    })
  const sort = p.sorts.find((s) => s.place === e.name || s.at === e.name)
  if (sort)
    return report('check/not-a-number', e.span, {
      message: `${e.name} is an order, not a number`,
      expected: `${sort.place}[…] in a map, ${sort.at}[…] in an inverse`,
    })
  if (p.refused?.has(e.name)) return null
  return report(p.unknown ?? 'check/unknown-name', e.span, {
    message: `there is no ${e.name} in ${p.what}`,
    expected: expectedNames(p),
    lookup: { name: e.name, candidates: [...p.values.keys()] },
  })
}

function accessAt(p: FormatScope, e: Ast.Access, names: Names): Typed | null {
  const { name } = e.buffer
  const sort = p.sorts.find((s) => s.place === name || s.at === name)
  const own = p.lists?.find((l) => l.name === name)
  const list = !sort && !own && isGiven(p, name, 'list', e.buffer.span)
  if (p.refused?.has(name) && !sort && !list && !own) return null
  if (!sort && !list && !own)
    return report('check/unknown-buffer', e.buffer.span, {
      message: `there is no array ${name} in ${p.what}`,
      expected: 'a list, or a name of a sort',
      lookup: {
        name,
        candidates: [
          ...p.sorts.flatMap((s) => [s.place, s.at]),
          ...(p.lists ?? []).map((l) => l.name),
          ...p.given.kinds.keys(),
        ],
      },
    })
  const [index, more] = e.index
  if (!index || more)
    return report('check/index-count', e.span, {
      message: `${name} has one dimension, and ${e.index.length} indices are given`,
      expected: `${name}[…]`,
    })
  if (!p.loads)
    return report('check/array-here', e.span, {
      message: `${name}[…] cannot be used in ${p.what}`,
      hint: 'use sizes and parameters: the elements of arrays are known only when data are bound',
    })
  const x = integerAt(index, names, 'an index')
  if (!x) return null
  if (list) return plain(load(name, [x], 'index', e.span))
  if (own) return listed(p, e, own, x)
  return sorted(p, e, sort!, x)
}

/**
 * The coordinate at a position of a list, under the coordinates on the axes above. Only inverse maps may use such a
 * coordinate.
 */
function listed(p: FormatScope, e: Ast.Access, { name, under }: ListName, x: Expr): Typed | null {
  if (typeof p.queries === 'string')
    return plain(load(name, [...under.map((a) => variable(a)), x], 'index', e.span))
  return report('check/table-in-map', e.span, {
    message: `${name}[…] (the coordinate at a position of the list) is allowed only in an inverse; this is ${p.what}`,
    hint: `the position of a coordinate is position(${name})`,
  })
}

/** The place of a coordinate in a sort (in a map), or the coordinate at a place (in an inverse map). */
function sorted(p: FormatScope, e: Ast.Access, sort: SortNames, x: Expr): Typed | null {
  const { queries } = p
  const place = e.buffer.name === sort.place
  if (place && typeof queries !== 'string')
    return plain(queries.add({ kind: 'place', sort: sort.place, of: x }, e.span))
  if (!place && typeof queries === 'string') return plain(load(sort.at, [x], 'index', e.span))
  return place
    ? report('check/query-place', e.span, {
        message: `${sort.place}[…] (the rank of a coordinate in the sort) is not allowed in ${p.what}`,
        hint: `the coordinate of a rank is ${sort.at}[…]`,
      })
    : report('check/table-in-map', e.span, {
        message: `${sort.at}[…] (the coordinate of a rank in the sort) is allowed only in an inverse; this is ${p.what}`,
        hint: `the rank of a coordinate is ${sort.place}[…]`,
      })
}

// Declaration of the parameters of formats.

export function declareFormatParams(d: Declared, list: readonly Ast.FormatParam[]): FormatParam[] {
  const params: FormatParam[] = []
  for (const p of list) {
    declare(d, p.name, 'parameter')
    const measured = p.type === 'size'
    const kind: FormatParamKind = p.type === 'size' ? 'integer' : p.type
    const before = constantPlace(numbersOf(params), givenOf(params), 'a default')
    const fallback =
      p.default && numberAt(before, p.default, kind === 'real' ? 'real' : 'integer', p.name.name)
    params.push({ name: p.name.name, kind, default: fallback, measured, span: p.span })
  }
  return params
}

/** The numeric parameters. A real parameter is an f64, because the host computes with it. */
export const numbersOf = (params: readonly FormatParam[]): Numbers =>
  new Map(
    params.flatMap(({ name, kind }) =>
      kind === 'integer' || kind === 'real'
        ? [[name, { name, dtype: kind === 'real' ? 'f64' : 'index' }] as const]
        : [],
    ),
  )

export const givenOf = (params: readonly FormatParam[]): ListAndSetParams => ({
  kinds: new Map(
    params.flatMap(({ name, kind }) => (kind === 'list' || kind === 'set' ? [[name, kind] as const] : [])),
  ),
})

/** The scope of constants: parameters, but nothing that depends on data. */
export const constantPlace = (values: Numbers, given: ListAndSetParams, what: string): FormatScope => ({
  what,
  values,
  given,
  size: null,
  sorts: [],
  loads: false,
  dims: [],
  queries: 'it is a constant: parameters and arithmetic',
})

/** An expression for a parameter: an integer, or f64 for a real one. */
export function numberAt(p: FormatScope, e: Ast.Expr, kind: 'integer' | 'real', what: string): Expr | null {
  const names = namesAt(p)
  return kind === 'integer' ? integerAt(e, names, what) : converted(e, names, 'f64', what)
}
