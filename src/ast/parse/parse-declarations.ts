/** Monoids, formats, compositions, memories and instructions: parse actions for the grammar. */
import * as ast from '../nodes/nodes.ts'
import { INSTR_TEXTS } from '../nodes/nodes-instr.ts'
import { checkSameLength, monoidField, type Option, option, typeName } from './checks.ts'
import type { Writable } from './comments.ts'
import { type FormatItem, formatBody, formatParam, requireRules } from './format-items.ts'
import type { Actions, Braces } from './parse-context.ts'
import {
  between,
  blockItem,
  checked,
  get,
  getList,
  item,
  line,
  part,
  slotsOf,
  spanOf,
  withHeight,
  word,
} from './parse-context.ts'

type WidthNode = Omit<ast.Width, 'doubling'>
type Combine = Pick<ast.Monoid, 'left' | 'right' | 'result'>
export const monoidLines = new WeakMap<ast.Monoid, readonly [Writable, Writable]>()

export const formats: Actions = {
  Monoid(_, name, opening, fields, closing, open, identity, _s, combine, _t, derivative, _u, close) {
    const rule = get<ast.MonoidDerivative | null>(derivative)
    const node: ast.Monoid = {
      kind: 'monoid',
      name: get(name),
      fields: get<ast.Param[]>(fields).map(monoidField),
      identity: get(identity),
      ...get<Combine>(combine),
      ...(rule && { derivative: rule }),
      span: spanOf(this),
    }
    const fieldCount = {
      what: 'component',
      length: node.fields.length,
      span: between(spanOf(opening), spanOf(closing)),
    }
    checkSameLength(fieldCount, { what: 'value', length: node.identity.length, span: spanOf(identity) })
    checkSameLength(fieldCount, { what: 'value', length: node.result.length, span: spanOf(combine) })
    if (rule)
      checkSameLength(fieldCount, { what: 'value', length: rule.values.length, span: spanOf(derivative) })
    const lines = [identity, combine].map((n) => item({ span: spanOf(n) }))
    blockItem(node, { items: lines, span: between(spanOf(open), spanOf(close)) })
    const [first, second] = slotsOf(lines)
    monoidLines.set(node, [first!.trivia, second!.trivia])
    return node
  },
  AdjointRule: part<ast.MonoidDerivative>(
    null,
    '',
    '',
    'operand',
    '',
    'result',
    '',
    'adjoint',
    '',
    '',
    'values',
  ),
  Combine: part<Combine>(null, '', '', 'left', '', 'right', '', '', 'result'),
  Format(_, name, params, _over, over, body) {
    const braces = get<Braces<FormatItem>>(body)
    const id = get<ast.Ident>(name)
    const node = {
      kind: 'format' as const,
      name: id,
      params: getList<ast.FormatParam>(params),
      over: get<ast.ListName[]>(over),
      body: formatBody(braces.items, id),
      span: spanOf(this),
    }
    return blockItem<ast.Format>(node, braces)
  },
  FormatParam(name, _colon, type, _eq, value): ast.FormatParam {
    const id = get<ast.Ident>(name)
    return formatParam(id, type.children[0] ? word(type.children[0]) : null, get(value), spanOf(this))
  },
  CoordMap: line<ast.CoordMap>(null, 'kind=', 'from', '', '', 'to', ''),
  Sort: line<ast.Sort>('sort', '', 'dim', '', 'by', '', 'within', '', '', 'place', '', 'at', ''),
  Mask: line<ast.Mask>('mask', '', 'name'),
  Holds: line<ast.Holds>('where', 'cond'),
  Part: line<ast.PartRule>('part', '', 'name', '', 'use', 'where'),
  Partition: checked(
    line<ast.PartitionRule>('partition', '', 'dim', '', 'into', '', 'as', '{rules}'),
    requireRules,
  ),
  Bucket: checked(
    line<ast.BucketRule>('bucket', '', 'dims', '', '', '', 'widths', '', 'as', 'split?', '{rules}'),
    requireRules,
  ),
  Dims_one: (name) => [get(name)],
  Widths: (first, ops, others): readonly ast.Width[] => [
    { ...get<WidthNode>(first), doubling: false },
    ...get<WidthNode[]>(others).map((w, k) => ({
      ...w,
      doubling: ops.children[k]!.sourceString === '..',
    })),
  ],
  Width_power: part<WidthNode>(null, 'value', '', 'power'),
  Width_plain: part<WidthNode>({ power: null }, 'value'),
  FormatUse: part<ast.FormatUse>(null, 'format', 'args*'),
  ListName(name, all): ast.ListName {
    return { ...get<ast.Ident>(name), ...(all.children.length > 0 && { all: true }) }
  },
  Element(name, _open, index, close): ast.Element {
    const id = get<ast.Ident>(name)
    const k = get<ast.Expr | null>(index)
    return k ? { ...id, span: between(id.span, spanOf(close)), index: k } : id
  },
  Item_all: part<ast.Spread>('spread', 'list', ''),
  Item_each(value, each): ast.Repeat {
    const [e, f] = [get<ast.Expr>(value), get<ast.For>(each)]
    return withHeight({ kind: 'repeat', value: e, each: f, span: spanOf(this) }, e)
  },
  For: part<ast.For>(null, '', 'name', '', 'from', '', 'to'),
}

// Memories and instructions.

/** Checks for a scalar type, or the name of a type parameter. */
function checkType(id: ast.Ident, params: readonly ast.TileParam[]): void {
  const typeParams = params.flatMap((p) => (p.types ? [p.name.name] : []))
  typeName<string>(id, [...ast.SCALAR_TYPES, ...typeParams])
}

export const instructions: Actions = {
  Memory: checked(
    line<ast.Memory>(
      'memory',
      ...(['', 'name', 'params*', '', 'type', '', 'shape', '', '', 'scope'] as const),
      ...(['threads', 'replicated?', 'aligned', '{items}'] as const),
    ),
    ({ type, params }: ast.Memory) => checkType(type, params),
  ),
  TileParam: part<ast.TileParam>(null, 'name', '', 'types'),
  Limit: line<ast.Limit>('limit', '', 'cond'),
  Examples: line<ast.Examples>('examples', '', 'of'),
  Instance: part<ast.Instance>(null, 'name', 'args*'),
  ElementMap: line<ast.ElementMap>('element', '', '', 'lane', '', 'slot', '', '', '', 'to', ''),
  AddressMap: line<ast.AddressMap>('address', '', 'from', '', 'to'),
  MemoryText(fill, target, needs, code) {
    return item<ast.MemoryText>({
      kind: 'text',
      what: fill.children.length > 0 ? 'fill' : 'type',
      target: get(target),
      needs: getList(needs),
      code: get(code),
      span: spanOf(this),
    })
  },
  Need: part<ast.Need>(null, 'name', 'args*'),
  needArg(_) {
    return this.sourceString
  },
  instrWord(_) {
    return word(this)
  },
  Instr: checked(
    line<ast.Instr>(
      'instr',
      ...(['', 'name', 'params*', '', 'operands', '', 'threads', 'words', '{items}'] as const),
    ),
    ({ operands, params }: ast.Instr) => {
      for (const o of operands) checkType(o.type, params)
    },
  ),
  Mapped: (_, swizzle): ast.Mapped => ({ swizzle: get(swizzle) }),
  OperandOption_packed: (bits): Option => ({ key: 'packed', value: get(bits), span: spanOf(bits) }),
  OperandOption_aligned: (bytes): Option => ({ key: 'aligned', value: get(bytes), span: spanOf(bytes) }),
  OperandOption_ascending: (count): Option => ({ key: 'ascending', value: get(count), span: spanOf(count) }),
  OperandOption_mapped: (box): Option => ({ key: 'mapped', value: get(box), span: spanOf(box) }),
  OperandOption_fenced: (given): Option => ({ key: 'fenced', value: true, span: spanOf(given) }),
  Operand(name, _colon, type, _open, shape, _close, _in, memories, options): ast.Operand {
    const operandOptions = get<Option[]>(options)
    return {
      name: get(name),
      type: get(type),
      shape: get(shape),
      memories: get(memories),
      packed: option(operandOptions, 'packed'),
      aligned: option(operandOptions, 'aligned'),
      ascending: option(operandOptions, 'ascending'),
      mapped: option(operandOptions, 'mapped'),
      fenced: option(operandOptions, 'fenced') ?? false,
      span: spanOf(this),
    }
  },
  Precision: line<ast.Precision>('precision', '', 'bits', ''),
  InstrText(what, target, _from, version, needs, code) {
    const kind = what.children[0]?.sourceString
    const from = version.children[0]?.sourceString
    return item<ast.InstrText>({
      kind: 'text',
      what: INSTR_TEXTS.find((w) => w === kind) ?? 'run',
      target: get(target),
      from: from === undefined ? null : Number(from),
      needs: getList(needs),
      code: get(code),
      span: spanOf(this),
    })
  },
}
