/** Kernels, statements and expressions: parse actions for the grammar. */
import type { IterationNode, Node } from 'ohm-js'
import { failAt } from '../diagnostics/diagnostic.ts'
import { type Span, spanAt } from '../diagnostics/span.ts'
import * as ast from '../nodes/nodes.ts'
import { axisDef } from './axisdef.ts'
import { checkSameLength, iterKinds, numberLiteral, type Option, option, typeName } from './checks.ts'
import { type BlockSlot, Writable } from './comments.ts'
import { axisClaims, checkKernelAxis, checkPacked, checkPadded } from './format-items.ts'
import { MAX_BRANCHES, rejectBranchCount } from './lexical-scan.ts'
import type { Actions, Braces } from './parse-context.ts'
import {
  between,
  block,
  blockItem,
  checked,
  get,
  getList,
  item,
  line,
  part,
  register,
  spanOf,
  withHeight,
  word,
} from './parse-context.ts'

function chain(first: Node, ops: IterationNode, rest: IterationNode): ast.Expr {
  return ops.children.reduce<ast.Expr>((a, op, k) => {
    const b = get<ast.Expr>(rest.children[k]!)
    return binary(op, a, b)
  }, get(first))
}

const OPS: Readonly<Record<string, ast.BinaryOp>> = {
  or: 'or',
  and: 'and',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  '==': 'eq',
  '!=': 'ne',
  '+': 'add',
  '-': 'sub',
  '*': 'mul',
  '/': 'div',
  '%': 'mod',
}
const binary = (op: Node, a: ast.Expr, b: ast.Expr): ast.Expr =>
  withHeight({ kind: 'binary', op: OPS[op.sourceString]!, a, b, span: between(a.span, b.span) }, a, b)

function unaryChain(op: ast.UnaryOp, ops: IterationNode, x: Node): ast.Expr {
  return ops.children.reduceRight<ast.Expr>(
    (e, o) => withHeight({ kind: 'unary', op, x: e, span: between(spanOf(o), e.span) }, e),
    get(x),
  )
}

type BlockNode = Braces<ast.Stmt>
/** An axis or list without its keyword. */
type LevelNode = Omit<ast.AxisDecl, 'span' | keyof Writable>
interface Branch {
  readonly cond: ast.Expr
  readonly body: BlockNode
  readonly span: Span
}

/** An `if` with its `else if`s, each of which is the only statement in the `else` of the previous one. */
function ifChain(first: Branch, rest: readonly Branch[], last: BlockNode | null, end: number): ast.If {
  const branches = [first, ...rest]
  if (branches.length > MAX_BRANCHES) rejectBranchCount(branches[MAX_BRANCHES]!.span)
  let tail: ast.If | undefined
  let blocks: BlockSlot[] = []
  for (const b of branches.toReversed()) {
    const trivia = new Writable()
    const ownBlocks = [block(b.body, trivia)]
    if (!tail && last) ownBlocks.push(block(last, trivia, 'else'))
    blocks = [...ownBlocks, ...blocks]
    const otherwise = tail ? [tail] : (last?.items ?? [])
    const span = spanAt(b.span, b.span.start, end)
    tail = { kind: 'if', cond: b.cond, then: b.body.items, else: otherwise, span }
    register(tail, { span, blocks, trivia })
  }
  return tail!
}

function checkKernel({ typeParams, params, base, members }: ast.Kernel): void {
  const types = [...ast.SCALAR_TYPES, ...typeParams.map((p) => p.name.name)]
  for (const p of params) typeName(p.type, ['size', ...types])
  for (const t of base?.types ?? []) typeName(t, types)
  for (const m of members)
    if (m.kind === 'buffer') for (const t of [m.type, m.accumulate]) if (t) typeName(t, types)
}

/** Most copies of members: enough for the layers of any model, and elaborated in seconds. */
const MOST_COPIES = 1000

function checkCopies({ count }: ast.Copies): void {
  if (count.float || count.value < 1 || count.value > MOST_COPIES)
    failAt('parse/copies', count.span, {
      message: 'members are repeated a fixed number of times',
      expected: `an integer from 1 to ${MOST_COPIES}`,
    })
}

export const kernels: Actions = {
  Kernel: checked(
    line<ast.Kernel>('kernel', '', 'name', 'typeParams*', 'params', 'base', '{members}'),
    checkKernel,
  ),
  Gradient: line<ast.Kernel>(
    () => ({ kind: 'kernel', typeParams: [], params: [], base: null, members: [] }),
    '',
    'name',
    '',
    'gradient',
  ),
  GradientOf: part<ast.GradientOf>(
    null,
    'of',
    '',
    'by',
    '',
    '',
    'wrt',
    '',
    'stopping*',
    'recomputing*',
    'rounding*',
  ),
  Wanted_dense: (_, name) => ({ ...get<ast.Ident>(name), dense: true }),
  Derived: part<ast.BaseKernel>(null, 'name', 'types*'),
  TypeParam: part<ast.TypeParam>(null, 'name', '', 'types'),
  Types: (types) => get<ast.Ident[]>(types).map((t) => typeName(t, ast.SCALAR_TYPES)),
  Extends: part<ast.BaseKernel>(null, '', 'name', 'types*'),
  Param: part<ast.Param>(null, 'name', '', 'type'),
  Define: line<ast.Define>('define', '', 'name', '', 'params', '', '', 'value'),
  KernelCall: line<ast.KernelCall>('kernel_call', '', 'results*', 'kernel', 'types*', 'args', '', 'label'),
  CallResults_several: (names, _) => get(names),
  CallResults_one: (name, _) => [get(name)],
  Copies: checked(line<ast.Copies>('copies', '', 'count', '', 'index', '{members}'), checkCopies),
  Rounds: line<ast.Rounds>('rounds', '', 'name', '...', '{members}'),
  RoundsHead_counted: (_open, iter, _close, _as, _T, condition) => ({
    iter: get(iter),
    while: get(condition),
  }),
  RoundsHead_conditional: (_open, _close, condition) => ({ iter: null, while: get(condition) }),
  Member(node, _) {
    const member = get<ast.Member>(node)
    if (member.kind === 'axis') checkKernelAxis(member)
    return member
  },
  Axis: line<ast.AxisDecl>(null, '', '...'),
  ListAxis: line<ast.AxisDecl>({ list: true }, '', '...'),
  Level(name, _eq, kind, _open, args, close, modifiers, padded, fields, each) {
    const words = modifiers.children.map(word)
    const claims = axisClaims(words)
    const mods = words.filter((w) => !claims.some((c) => c.name === w.name))
    const span = between(spanOf(kind), mods.at(-1)?.span ?? spanOf(close))
    const def = axisDef({ kind: word(kind), args: get(args), modifiers: mods, span })
    const padding = get<ast.Expr | null>(padded)
    if (padding) checkPadded(def, claims, spanOf(padded))
    const packed = get<ast.Expr | null>(fields)
    if (packed) checkPacked(def, spanOf(fields))
    const repeat = get<ast.For | null>(each)
    return {
      kind: 'axis',
      name: get(name),
      def,
      claims,
      ...(padding && { padding }),
      ...(packed && { packed }),
      ...(repeat && { each: repeat }),
    } satisfies LevelNode
  },
  Buffer(_, name, _colon, type, _open, axes, _close, role, options) {
    const opts = get<Option[]>(options)
    return item<ast.BufferDecl>({
      kind: 'buffer',
      name: get(name),
      type: get(type),
      axes: get(axes),
      role: { name: role.sourceString as ast.Role, span: spanOf(role) },
      fill: option(opts, 'fill'),
      accumulate: option(opts, 'accumulate'),
      span: spanOf(this),
    })
  },
  BufferOption_fill(_, minus, literal): Option {
    return { key: 'fill', value: unaryChain('neg', minus, literal), span: spanOf(this) }
  },
  BufferOption_accumulate: part<Option>({ key: 'accumulate' }, '', 'value'),
}

export const statements: Actions = {
  Iterate(_, name, _open, iters, close, _as, kinds, where, body) {
    const letters = kinds.children[0]
    const names = get<Omit<ast.Iter, 'mode'>[]>(iters)
    const modes = iterKinds(letters ? word(letters) : null, names.length, spanOf(close))
    const braces = get<BlockNode>(body)
    return blockItem<ast.Iterate>(
      {
        kind: 'iterate',
        name: get(name),
        iters: names.map((n, k) => ({ ...n, mode: modes[k]! })),
        where: get(where),
        body: braces.items,
        span: spanOf(this),
      },
      braces,
    )
  },
  Iter(name, _, axis): Omit<ast.Iter, 'mode'> {
    const id = get<ast.Ident>(name)
    return { name: id, axis: get<ast.Ident | null>(axis) ?? id, span: spanOf(this) }
  },
  Let: line<ast.Let>('let', '', 'name', '', 'value'),
  If(_, _open, cond, _close, body, rest, last) {
    const first = { cond: get<ast.Expr>(cond), body: get<BlockNode>(body), span: spanOf(this) }
    return ifChain(first, get(rest), get(last), spanOf(this).end)
  },
  ElseIf(_, kwIf, _open, cond, _close, body): Branch {
    return { cond: get(cond), body: get(body), span: between(spanOf(kwIf), spanOf(this)) }
  },
  Update(targets, op, values) {
    const span = spanOf(this)
    const reducer = op.sourceString.slice(0, -1)
    const parts = { targets: get<ast.Access[]>(targets), values: get<ast.Expr[]>(values) }
    checkSameLength(
      { what: 'target', length: parts.targets.length, span: spanOf(targets) },
      { what: 'value', length: parts.values.length, span: spanOf(values) },
    )
    if (reducer === '') return item<ast.Assign>({ kind: 'assign', ...parts, span })
    const opSpan = spanOf(op)
    return item<ast.Reduce>({
      kind: 'reduce',
      reducer: { name: reducer, span: spanAt(opSpan, opSpan.start, opSpan.end - 1) },
      ...parts,
      span,
    })
  },
  Targets_one: (target) => [get(target)],
  Values_tuple: (_, first, _comma, rest, _close) => [get(first), ...get<ast.Expr[]>(rest)],
  Values_one: (value) => [get(value)],
}

export const expressions: Actions = {
  Expr: chain,
  And: chain,
  Not: (ops, x) => unaryChain('not', ops, x),
  Compare(a, op, b) {
    return op.children[0] ? binary(op.children[0], get(a), get(b.children[0]!)) : get(a)
  },
  Sum: chain,
  Product: chain,
  Unary: (ops, x) => unaryChain('neg', ops, x),
  Primary_by(fn, _, _by, by, _close): ast.Call {
    const parts = get<ast.Expr[]>(by)
    return withHeight({ kind: 'call', fn: word(fn), args: [], by: parts, span: spanOf(this) }, ...parts)
  },
  Primary_fillRatio(fn, _, tensor, _by, parts, _close): ast.Call {
    const tensorName: ast.Expr = { kind: 'name', name: tensor.sourceString, span: spanOf(tensor) }
    const formatParts = get<readonly ast.AsPart[]>(parts)
    const call = {
      kind: 'call' as const,
      fn: word(fn),
      args: [tensorName],
      parts: formatParts,
      span: spanOf(this),
    }
    return withHeight(call, ...formatParts.flatMap((p) => (p.where ? [...p.args, p.where] : p.args)))
  },
  Primary_call(fn, _, args, _by, by, _close): ast.Call {
    const parts = get<ast.Expr[]>(args)
    const groups = getList<ast.Expr>(by)
    const call = { kind: 'call' as const, fn: word(fn), args: parts, span: spanOf(this) }
    return withHeight(groups.length > 0 ? { ...call, by: groups } : call, ...parts, ...groups)
  },
  Primary_field: part<ast.Field>('field', 'object', '', 'field'),
  Primary_name: (name): ast.Name => ({ kind: 'name', name: name.sourceString, span: spanOf(name) }),
  Primary_paren(_, e, _close): ast.Expr {
    const inner = get<ast.Expr>(e)
    return withHeight({ ...inner, span: spanOf(this) }, inner)
  },
  Access(buffer, _, index, _close): ast.Access {
    const parts = get<ast.Expr[]>(index)
    return withHeight({ kind: 'access', buffer: get(buffer), index: parts, span: spanOf(this) }, ...parts)
  },
  number(_i, _p, _f, _e, _s, _d) {
    return numberLiteral(this.sourceString, spanOf(this))
  },
  word(_) {
    const text = this.sourceString
    const span = spanOf(this)
    if (text === 'true' || text === 'false') return { kind: 'bool', value: text === 'true', span }
    return {
      kind: 'number',
      value: text === 'inf' ? Number.POSITIVE_INFINITY : Number.NaN,
      float: true,
      span,
    }
  },
}
