/** Monoids, formats and compositions: parse actions for the grammar. */

import type * as ast from '../nodes/nodes.ts'
import { checkSameLength, monoidField } from './checks.ts'
import type { Writable } from './comments.ts'
import { type FormatItem, formatBody, formatParam, requireRules } from './format-items.ts'
import {
  type Actions,
  all,
  type Braces,
  between,
  blockItem,
  get,
  item,
  list,
  maybe,
  maybeList,
  slotsOf,
  spanOf,
  withHeight,
  word,
} from './parse-context.ts'

export const formats: Actions = {
  Monoid(_, name, opening, fields, closing, open, identity, _s, combine, _t, close) {
    const parts = { identity: get<ast.Expr[]>(identity), ...get<Combine>(combine) }
    const node: ast.Monoid = {
      kind: 'monoid',
      name: get(name),
      fields: list<ast.Param>(fields).map(monoidField),
      ...parts,
      span: spanOf(this),
    }
    const fieldCount = {
      what: 'component',
      length: node.fields.length,
      span: between(spanOf(opening), spanOf(closing)),
    }
    checkSameLength(fieldCount, { what: 'value', length: node.identity.length, span: spanOf(identity) })
    checkSameLength(fieldCount, { what: 'value', length: node.result.length, span: spanOf(combine) })
    const lines = [identity, combine].map((n) => item({ span: spanOf(n) }))
    blockItem(node, { open, close }, slotsOf(lines))
    const [first, second] = slotsOf(lines)
    monoidLines.set(node, [first!.trivia, second!.trivia])
    return node
  },
  Identity: (_, values) => get(values),
  Combine: (_, _open, left, _comma, right, _close, _eq, result): Combine => ({
    left: get(left),
    right: get(right),
    result: get(result),
  }),
  Format(_, name, params, _over, over, open, items, close) {
    const body = all<FormatItem>(items)
    const id = get<ast.Ident>(name)
    const node = {
      kind: 'format' as const,
      name: id,
      params: maybeList<ast.FormatParam>(params),
      over: get<ast.ListName[]>(over),
      body: formatBody(body, id),
      span: spanOf(this),
    }
    return blockItem<ast.Format>(node, { open, close }, slotsOf(body.map((n) => n.node)))
  },
  FormatParams: (_, params, _close) => list(params),
  FormatParam(name, _colon, type, _eq, value): ast.FormatParam {
    const id = get<ast.Ident>(name)
    return formatParam(id, type.children[0] ? word(type.children[0]) : null, maybe(value), spanOf(this))
  },
  FormatItem(node, _) {
    const itemNode = get<FormatItem | ast.AxisDecl | ast.Rule>(node)
    if ('what' in itemNode) return itemNode
    return itemNode.kind === 'axis' ? { what: 'axis', node: itemNode } : { what: 'rule', node: itemNode }
  },
  CoordMap(which, from, _, _open, to, _close): FormatItem {
    const node = item<ast.CoordMap>({ from: get(from), to: list(to), span: spanOf(this) })
    return { what: which.sourceString as 'map' | 'inverse', node }
  },
  Sort(_, dim, _by, by, _within, within, _arrow, _open, place, _comma, at, _close): FormatItem {
    const names = { dim: get<ast.Element>(dim), place: get<ast.Ident>(place), at: get<ast.Ident>(at) }
    const node = item<ast.Sort>({ ...names, by: get(by), within: maybe(within), span: spanOf(this) })
    return { what: 'sort', node }
  },
  Mask(_, name): FormatItem {
    return { what: 'mask', node: item<ast.Mask>({ name: get(name), span: spanOf(this) }) }
  },
  Holds(where): FormatItem {
    return { what: 'where', node: item<ast.Holds>({ cond: get(where), span: spanOf(this) }) }
  },
  Rule: (node, _) => get(node),
  Rules: (open, rules, close): RulesNode => ({ rules: all(rules), braces: { open, close } }),
  Part(_, name, _eq, use, where) {
    const parts = { name: maybe<ast.Ident>(name), use: get<ast.FormatUse>(use) }
    return item<ast.PartRule>({ kind: 'part', ...parts, where: maybe(where), span: spanOf(this) })
  },
  Partition(word, dim, _into, into, _as, as, rules) {
    const { rules: ruleNodes, braces } = get<RulesNode>(rules)
    const node: ast.PartitionRule = {
      kind: 'partition',
      dim: get(dim),
      into: get(into),
      as: maybe(as),
      rules: requireRules(ruleNodes, 'partition', spanOf(word)),
      span: spanOf(this),
    }
    return blockItem(node, braces, slotsOf(ruleNodes))
  },
  Bucket(word, dims, _by, _length, _into, first, ops, others, _as, as, split, rules) {
    const { rules: ruleNodes, braces } = get<RulesNode>(rules)
    const otherWidths = all<Omit<ast.Width, 'doubling'>>(others)
    const node: ast.BucketRule = {
      kind: 'bucket',
      dims: get(dims),
      widths: [
        { ...get<Omit<ast.Width, 'doubling'>>(first), doubling: false },
        ...otherWidths.map((w, k) => ({ ...w, doubling: ops.children[k]!.sourceString === '..' })),
      ],
      as: get(as),
      split: split.children.length > 0,
      rules: requireRules(ruleNodes, 'bucket', spanOf(word)),
      span: spanOf(this),
    }
    return blockItem(node, braces, slotsOf(ruleNodes))
  },
  Dims_several: (_, names, _close) => list(names),
  Dims_one: (name) => [get(name)],
  Width_power(value, _, power): Omit<ast.Width, 'doubling'> {
    return { value: get(value), power: get(power), span: spanOf(this) }
  },
  Width_plain(value): Omit<ast.Width, 'doubling'> {
    return { value: get(value), power: null, span: spanOf(this) }
  },
  FormatUse(format, args): ast.FormatUse {
    return { format: get(format), args: maybeList(args), span: spanOf(this) }
  },
  Names: (_, names, _close) => list(names),
  Lists: (_, names, _close) => list(names),
  ListName(name, all): ast.ListName {
    return { ...get<ast.Ident>(name), ...(all.children.length > 0 && { all: true }) }
  },
  Element(name, _open, index, close): ast.Element {
    const id = get<ast.Ident>(name)
    const k = maybe<ast.Expr>(index)
    return k ? { ...id, span: between(id.span, spanOf(close)), index: k } : id
  },
  Item_all(name, dots): ast.Spread {
    return { kind: 'spread', list: get(name), span: between(spanOf(name), spanOf(dots)) }
  },
  Item_each(value, each): ast.Repeat {
    const [e, f] = [get<ast.Expr>(value), get<ast.For>(each)]
    return withHeight({ kind: 'repeat', value: e, each: f, span: spanOf(this) }, e)
  },
  For(_, name, _from, from, _to, to): ast.For {
    return { name: get(name), from: get(from), to: maybe(to), span: spanOf(this) }
  },
}

interface RulesNode {
  readonly rules: readonly ast.Rule[]
  readonly braces: Braces
}
type Combine = Pick<ast.Monoid, 'left' | 'right' | 'result'>
export const monoidLines = new WeakMap<ast.Monoid, readonly [Writable, Writable]>()
