/** Text → AST. The only file that touches Ohm: actions over the grammar's concrete syntax tree. */
import type { IterationNode, Node } from 'ohm-js'
import grammar, { type SptActionDict } from '../../grammar/spt.ohm-bundle.js'
import { axisDef } from './axisdef.ts'
import {
  type BufferOption,
  bindTarget,
  Heights,
  into,
  iterKinds,
  monoidField,
  numberLit,
  option,
  sameNumber,
  typeName,
} from './checks.ts'
import { Attacher, type BlockSlot, type Slot, Writable } from './comments.ts'
import { fail, type Source, type Span, SptError } from './diagnostic.ts'
import { explain } from './explain.ts'
import { axisClaims, type FormatItem, formatBody, formatParam, someRules } from './format-items.ts'
import * as ast from './nodes.ts'
import { MAX_NESTING, scan, tooDeep } from './scan.ts'

/** What the actions need besides their node; one for each call of `parse`, which is synchronous. */
interface Context {
  readonly name: string
  readonly slots: Map<object, Slot>
  readonly heights: Heights
}
let cx: Context

// Reading children ---------------------------------------------------------------------------------------------

const get = <T>(n: Node): T => n.ast() as T
const all = <T>(n: Node): T[] => n.children.map((c) => get<T>(c))
const list = <T>(n: Node): T[] => all(n.asIteration())
const maybe = <T>(n: IterationNode): T | null => (n.children[0] ? get<T>(n.children[0]) : null)
const maybeList = <T>(n: IterationNode): T[] => (n.children[0] ? get<T[]>(n.children[0]) : [])
const spanOf = (n: Node): Span => ({ source: cx.name, start: n.source.startIdx, end: n.source.endIdx })
const between = (a: Span, b: Span): Span => ({ source: cx.name, start: a.start, end: b.end })
const word = (n: Node): ast.Ident => ({ name: n.sourceString, span: spanOf(n) })

/** Registers a node that can carry comments. */
function item<T extends { readonly span: Span }>(node: T, blocks: readonly BlockSlot[] = []): T {
  cx.slots.set(node, { span: node.span, blocks, trivia: new Writable() })
  return node
}
const slotOf = (node: object): Slot => cx.slots.get(node)!
const slotsOf = (nodes: readonly object[]): Slot[] => nodes.map(slotOf)

interface Braces {
  readonly open: Node
  readonly close: Node
}
function block(
  { open, close }: Braces,
  slots: readonly Slot[],
  owner: Writable,
  which: 'then' | 'else' = 'then',
): BlockSlot {
  return { span: between(spanOf(open), spanOf(close)), slots, owner, which }
}
/** A node with one block. */
function blockItem<T extends { readonly span: Span }>(node: T, braces: Braces, slots: readonly Slot[]): T {
  const trivia = new Writable()
  cx.slots.set(node, { span: node.span, blocks: [block(braces, slots, trivia)], trivia })
  return node
}

// Expressions and branches -------------------------------------------------------------------------------------

const grown = <T extends ast.Expr>(e: T, ...parts: readonly ast.Expr[]): T => cx.heights.grown(e, parts)

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
  grown({ kind: 'binary', op: OPS[op.sourceString]!, a, b, span: between(a.span, b.span) }, a, b)

function prefixed(op: ast.UnaryOp, ops: IterationNode, x: Node): ast.Expr {
  return ops.children.reduceRight<ast.Expr>(
    (e, o) => grown({ kind: 'unary', op, x: e, span: between(spanOf(o), e.span) }, e),
    get(x),
  )
}

interface BlockNode {
  readonly stmts: readonly ast.Stmt[]
  readonly braces: Braces
}
interface Branch {
  readonly cond: ast.Expr
  readonly body: BlockNode
  readonly span: Span
}

/** An `if` with its `else if`s: each of those is the only statement in the `else` of the one before. */
function ifChain(first: Branch, rest: readonly Branch[], last: BlockNode | null, end: number): ast.If {
  const branches = [first, ...rest]
  if (branches.length > MAX_NESTING) tooDeep(branches[MAX_NESTING]!.span)
  let tail: ast.If | undefined
  let blocks: BlockSlot[] = []
  for (const b of branches.toReversed()) {
    const trivia = new Writable()
    const own = [block(b.body.braces, slotsOf(b.body.stmts), trivia)]
    if (!tail && last) own.push(block(last.braces, slotsOf(last.stmts), trivia, 'else'))
    blocks = [...own, ...blocks]
    const otherwise = tail ? [tail] : (last?.stmts ?? [])
    const span = { ...b.span, end }
    tail = { kind: 'if', cond: b.cond, then: b.body.stmts, else: otherwise, span }
    cx.slots.set(tail, { span, blocks, trivia })
  }
  return tail!
}

// The actions, in the grammar's order --------------------------------------------------------------------------

type Actions = SptActionDict<unknown>

const files: Actions = {
  File(tops) {
    const nodes = all<ast.Import | ast.Decl>(tops)
    const imports = nodes.filter((n) => n.kind === 'import')
    const decls = nodes.filter((n) => n.kind !== 'import')
    return { nodes, imports, decls }
  },
  Top: (node, _) => get(node),
  Import(_, names, _from, path) {
    const span = spanOf(path)
    return item<ast.Import>({
      kind: 'import',
      path: { value: path.sourceString.slice(1, -1), span },
      names: maybe(names),
      span: spanOf(this),
    })
  },
  ImportNames: (_, names, _close) => list(names),
  ImportName(name, _, as): ast.ImportName {
    const id = get<ast.Ident>(name)
    return { name: id, local: maybe(as) ?? id, span: spanOf(this) }
  },
}

const kernels: Actions = {
  Kernel(_, name, params, open, members, close) {
    const body = all<ast.Member>(members)
    return blockItem<ast.Kernel>(
      { kind: 'kernel', name: get(name), params: get(params), members: body, span: spanOf(this) },
      { open, close },
      slotsOf(body),
    )
  },
  Params: (_, params, _close) => list(params),
  Param(name, _, type): ast.Param {
    return { name: get(name), type: typeName(get(type), ['size', ...ast.SCALAR_TYPES]), span: spanOf(this) }
  },
  Member: (node, _) => get(node),
  Axis(_, name, _eq, kind, _open, args, close, modifiers) {
    const words = modifiers.children.map(word)
    const claims = axisClaims(words)
    const mods = words.filter((w) => !claims.some((c) => c.name === w.name))
    const span = between(spanOf(kind), mods.at(-1)?.span ?? spanOf(close))
    const def = axisDef({ kind: word(kind), args: list(args), modifiers: mods, span })
    return item<ast.AxisDecl>({ kind: 'axis', name: get(name), def, claims, span: spanOf(this) })
  },
  Buffer(_, name, _colon, type, _open, axes, _close, role, options) {
    const opts = all<BufferOption>(options)
    return item<ast.BufferDecl>({
      kind: 'buffer',
      name: get(name),
      type: typeName(get(type), ast.SCALAR_TYPES),
      axes: list(axes),
      role: { name: role.sourceString as ast.Role, span: spanOf(role) },
      fill: option(opts, 'fill'),
      accumulate: option(opts, 'accumulate'),
      span: spanOf(this),
    })
  },
  BufferOption_fill(_, minus, literal): BufferOption {
    return { key: 'fill', value: prefixed('neg', minus, literal), span: spanOf(this) }
  },
  BufferOption_accumulate(_, type): BufferOption {
    return { key: 'accumulate', value: typeName(get(type), ast.SCALAR_TYPES), span: spanOf(this) }
  },
}

const statements: Actions = {
  Where: (_, _open, cond, _close) => get(cond),
  Iterate(_, name, _open, iters, close, _as, kinds, where, body) {
    const letters = kinds.children[0]
    const names = list<Omit<ast.Iter, 'mode'>>(iters)
    const modes = iterKinds(letters ? word(letters) : null, names.length, spanOf(close))
    const { stmts, braces } = get<BlockNode>(body)
    return blockItem<ast.Iterate>(
      {
        kind: 'iterate',
        name: get(name),
        iters: names.map((n, k) => ({ ...n, mode: modes[k]! })),
        where: maybe(where),
        body: stmts,
        span: spanOf(this),
      },
      braces,
      slotsOf(stmts),
    )
  },
  Iter(name, _, axis): Omit<ast.Iter, 'mode'> {
    const id = get<ast.Ident>(name)
    return { name: id, axis: maybe(axis) ?? id, span: spanOf(this) }
  },
  Block: (open, stmts, close): BlockNode => ({ stmts: all(stmts), braces: { open, close } }),
  Stmt: (node, _) => get(node),
  Let(_, name, _eq, value) {
    return item<ast.Let>({ kind: 'let', name: get(name), value: get(value), span: spanOf(this) })
  },
  If(_, _open, cond, _close, body, rest, last) {
    const first = { cond: get<ast.Expr>(cond), body: get<BlockNode>(body), span: spanOf(this) }
    return ifChain(first, all(rest), maybe(last), this.source.endIdx)
  },
  ElseIf(_, kwIf, _open, cond, _close, body): Branch {
    return { cond: get(cond), body: get(body), span: between(spanOf(kwIf), spanOf(this)) }
  },
  Else: (_, body) => get(body),
  Update(targets, op, values) {
    const span = spanOf(this)
    const reducer = op.sourceString.slice(0, -1)
    const parts = { targets: get<ast.Access[]>(targets), values: get<ast.Expr[]>(values) }
    sameNumber(
      { what: 'target', length: parts.targets.length, span: spanOf(targets) },
      { what: 'value', length: parts.values.length, span: spanOf(values) },
    )
    if (reducer === '') return item<ast.Assign>({ kind: 'assign', ...parts, span })
    const at = spanOf(op)
    return item<ast.Reduce>({
      kind: 'reduce',
      reducer: { name: reducer, span: { ...at, end: at.end - 1 } },
      ...parts,
      span,
    })
  },
  Targets_tuple: (_, targets, _close) => list(targets),
  Targets_one: (target) => [get(target)],
  Values_tuple: (_, first, _comma, rest, _close) => [get(first), ...list(rest)],
  Values_one: (value) => [get(value)],
}

const expressions: Actions = {
  Expr: chain,
  And: chain,
  Not: (ops, x) => prefixed('not', ops, x),
  Compare(a, op, b) {
    return op.children[0] ? binary(op.children[0], get(a), get(b.children[0]!)) : get(a)
  },
  Sum: chain,
  Product: chain,
  Unary: (ops, x) => prefixed('neg', ops, x),
  Primary_by(fn, _, _by, by, _close): ast.Call {
    const parts = list<ast.Expr>(by)
    return grown({ kind: 'call', fn: word(fn), args: [], by: parts, span: spanOf(this) }, ...parts)
  },
  Primary_call(fn, _, args, _by, by, _close): ast.Call {
    const parts = list<ast.Expr>(args)
    const groups = by.children[0] ? list<ast.Expr>(by.children[0]) : []
    const call = { kind: 'call' as const, fn: word(fn), args: parts, span: spanOf(this) }
    return grown(groups.length > 0 ? { ...call, by: groups } : call, ...parts, ...groups)
  },
  Primary_field(object, _, field): ast.Field {
    return { kind: 'field', object: get(object), field: get(field), span: spanOf(this) }
  },
  Primary_name: (name): ast.Name => ({ kind: 'name', name: name.sourceString, span: spanOf(name) }),
  Primary_paren(_, e, _close): ast.Expr {
    const inner = get<ast.Expr>(e)
    return grown({ ...inner, span: spanOf(this) }, inner)
  },
  Access(buffer, _, index, _close): ast.Access {
    const parts = list<ast.Expr>(index)
    return grown({ kind: 'access', buffer: get(buffer), index: parts, span: spanOf(this) }, ...parts)
  },
  number(_i, _p, _f, _e, _s, _d) {
    return numberLit(this.sourceString, spanOf(this))
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
  ident(_) {
    return word(this)
  },
}

const formats: Actions = {
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
    sameNumber(fieldCount, { what: 'value', length: node.identity.length, span: spanOf(identity) })
    sameNumber(fieldCount, { what: 'value', length: node.result.length, span: spanOf(combine) })
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
      over: get<ast.Ident[]>(over),
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
    const made = get<FormatItem | ast.AxisDecl | ast.Rule>(node)
    if ('what' in made) return made
    return made.kind === 'axis' ? { what: 'axis', node: made } : { what: 'rule', node: made }
  },
  CoordMap(which, from, _, _open, to, _close): FormatItem {
    const node = item<ast.CoordMap>({ from: get(from), to: list(to), span: spanOf(this) })
    return { what: which.sourceString as 'map' | 'inverse', node }
  },
  Sort(_, dim, _by, by, _within, within, _arrow, _open, place, _comma, at, _close): FormatItem {
    const names = { dim: get<ast.Ident>(dim), place: get<ast.Ident>(place), at: get<ast.Ident>(at) }
    const node = item<ast.Sort>({ ...names, by: get(by), within: maybe(within), span: spanOf(this) })
    return { what: 'sort', node }
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
    const { rules: inside, braces } = get<RulesNode>(rules)
    const node: ast.PartitionRule = {
      kind: 'partition',
      dim: get(dim),
      into: get(into),
      as: maybe(as),
      rules: someRules(inside, 'partition', spanOf(word)),
      span: spanOf(this),
    }
    return blockItem(node, braces, slotsOf(inside))
  },
  Bucket(word, dims, _by, _length, _into, first, ops, more, _as, as, split, rules) {
    const { rules: inside, braces } = get<RulesNode>(rules)
    const rest = all<Omit<ast.Width, 'doubling'>>(more)
    const node: ast.BucketRule = {
      kind: 'bucket',
      dims: get(dims),
      widths: [
        { ...get<Omit<ast.Width, 'doubling'>>(first), doubling: false },
        ...rest.map((w, k) => ({ ...w, doubling: ops.children[k]!.sourceString === '..' })),
      ],
      as: get(as),
      split: split.children.length > 0,
      rules: someRules(inside, 'bucket', spanOf(word)),
      span: spanOf(this),
    }
    return blockItem(node, braces, slotsOf(inside))
  },
  Dims_several: (names) => get(names),
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
}

interface RulesNode {
  readonly rules: readonly ast.Rule[]
  readonly braces: Braces
}
type Combine = Pick<ast.Monoid, 'left' | 'right' | 'result'>
const monoidLines = new WeakMap<ast.Monoid, readonly [Writable, Writable]>()

const schedules: Actions = {
  Schedule(_, kernel, _dot, name, params, open, steps, close) {
    const body = all<ast.Step>(steps)
    return blockItem<ast.Schedule>(
      {
        kind: 'schedule',
        kernel: get(kernel),
        name: get(name),
        params: maybeList(params),
        steps: body,
        span: spanOf(this),
      },
      { open, close },
      slotsOf(body),
    )
  },
  ScheduleParams: (_, params, _close) => list(params),
  ScheduleParam(name, _, value): ast.ScheduleParam {
    return { name: get(name), default: maybe(value), span: spanOf(this) }
  },
  Steps: (steps) => all(steps),
  Step(node, _) {
    const made = get<ast.Step>(node)
    return made.kind === 'each' ? made : item({ ...made, span: spanOf(node) })
  },
  StepAs: (buffer, _, parts) => ({ kind: 'as', buffer: get(buffer), parts: get(parts) }),
  AsParts: (parts) => list(parts),
  AsPart(use, where): ast.AsPart {
    return { ...get<ast.FormatUse>(use), where: maybe(where), span: spanOf(this) }
  },
  StepEach(_, _part, _of, buffer, _as, as, open, steps, close) {
    const inside = all<ast.Step>(steps)
    const names = { buffer: get<ast.Ident>(buffer), as: get<ast.Ident>(as) }
    const node: ast.EachStep = { kind: 'each', ...names, steps: inside, span: spanOf(this) }
    return blockItem(node, { open, close }, slotsOf(inside))
  },
  StepWord_split(_, loop, by, _arrow, names) {
    return { kind: 'split', loop: get(loop), by: get(by), into: into(maybe(names), 2, spanOf(this)) }
  },
  StepWord_bind: (_, binds) => ({ kind: 'bind', binds: list(binds) }),
  StepWord_reorder: (_, loops) => ({ kind: 'reorder', loops: get(loops) }),
  StepWord_fuse: (_, loops, name) => ({ kind: 'fuse', loops: get(loops), into: maybe(name) }),
  StepWord_tile(_, loops, kwBy, _open, by, close, _arrow, names) {
    const tiled = get<ast.LoopRef[]>(loops)
    const factors = list<ast.Expr>(by)
    sameNumber(
      { what: 'loop', length: tiled.length, span: spanOf(loops) },
      { what: 'factor', length: factors.length, span: between(spanOf(kwBy), spanOf(close)) },
    )
    return {
      kind: 'tile',
      loops: tiled,
      by: factors,
      into: into(maybe(names), 2 * tiled.length, spanOf(this)),
    }
  },
  StepWord_unroll: (_, loop, by) => ({ kind: 'unroll', loop: get(loop), by: maybe(by) }),
  StepWord_vectorize: (_, loop) => ({ kind: 'vectorize', loop: get(loop) }),
  StepWord_cacheRead: (_, buffer, at, _in, memory, name) => ({
    kind: 'cache_read',
    buffer: get(buffer),
    at: get(at),
    memory: get(memory),
    into: maybe(name),
  }),
  StepWord_cacheWrite: (_, buffer, at, _in, memory, name) => ({
    kind: 'cache_write',
    buffer: get(buffer),
    at: get(at),
    memory: get(memory),
    into: maybe(name),
  }),
  StepWord_computeAt: (_, iteration, at) => ({ kind: 'compute_at', iteration: get(iteration), at: get(at) }),
  StepWord_fission: (_, loop, _after, after) => ({ kind: 'fission', loop: get(loop), after: get(after) }),
  StepWord_rfactor: (_, loop, name) => ({ kind: 'rfactor', loop: get(loop), into: maybe(name) }),
  StepWord_atomic: (_, buffer) => ({ kind: 'atomic', buffer: get(buffer) }),
  StepWord_combine: (_, buffer, _in, nest) => ({ kind: 'combine', buffer: get(buffer), nest: maybe(nest) }),
  StepWord_attach: (_, loop, _to, to) => ({ kind: 'attach', loop: get(loop), to: get(to) }),
  StepWord_mergeParts: (_, _parts, _of, buffer) => ({ kind: 'merge_parts', buffer: get(buffer) }),
  StepWord_merge: (_, nests) => ({ kind: 'merge', nests: get(nests) }),
  StepWord_use: (_, schedule, args) => ({ kind: 'use', schedule: get(schedule), args: maybeList(args) }),
  Binding(loop, _, target): ast.Binding {
    return { loop: get(loop), to: bindTarget(target.sourceString, spanOf(target)), span: spanOf(this) }
  },
  Loops: (_, loops, _close) => list(loops),
  Loop(first, _, second): ast.LoopRef {
    const name = maybe<ast.Ident>(second)
    const id = get<ast.Ident>(first)
    return name ? { nest: id, name, span: spanOf(this) } : { nest: null, name: id, span: spanOf(this) }
  },
  At: (_, loop) => get(loop),
  By: (_, factor) => get(factor),
  Into: (_, name) => get(name),
  Args: (_, args, _close) => list(args),
}

const semantics = grammar.createSemantics()
semantics.addOperation<unknown>('ast', {
  ...files,
  ...kernels,
  ...statements,
  ...expressions,
  ...formats,
  ...schedules,
})

/** What Ohm knows of a failed match; the method is public in its documentation and absent from its types. */
interface Failures {
  getRightmostFailures(): readonly { toString(): string }[]
}

/** Matches a text with a rule, gives `use` what its action made, and hangs the comments where `use` says. */
function reading<T>(source: Source, rule: string, use: (made: unknown, attach: Attacher) => T): T {
  const comments = scan(source)
  const outer = cx
  cx = { name: source.name, slots: new Map(), heights: new Heights() }
  try {
    const match = grammar.match(source.text, rule)
    if (match.failed()) {
      const failures = (match as unknown as Failures).getRightmostFailures().map(String)
      fail(explain(source, match.getRightmostFailurePosition(), failures))
    }
    const result = use(semantics(match).ast(), new Attacher(source.text, comments))
    for (const [node, slot] of cx.slots) setTrivia(node, slot.trivia.value)
    return result
  } catch (e) {
    if (e instanceof SptError || !(e instanceof RangeError)) throw e
    return tooDeep({ source: source.name, start: 0, end: 0 })
  } finally {
    cx = outer
  }
}

/**
 * Reads a file. Throws `SptError` with one diagnostic, whose span lies in `source`, for text that is not in the
 * language; never anything else.
 */
export function parse(source: Source): ast.File {
  return reading(source, 'File', (made, attach) => {
    const { nodes, imports, decls } = made as {
      readonly nodes: readonly (ast.Import | ast.Decl)[]
      readonly imports: readonly ast.Import[]
      readonly decls: readonly ast.Decl[]
    }
    const trivia = new Writable()
    attach.file(slotsOf(nodes), trivia)
    const end = trivia.value
    const span = { source: source.name, start: 0, end: source.text.length }
    return { kind: 'file', imports, decls, span, ...(end && { trivia: end }) }
  })
}

/** Reads the steps of a schedule without its braces, as `printStep` writes them: one, or several. Throws like `parse`. */
export function parseSteps(source: Source): readonly ast.Step[] {
  return reading(source, 'Steps', (made) => made as readonly ast.Step[])
}

/** Reads what stands after `as`, on its own. Throws like `parse`. */
export function parseFormatParts(source: Source): readonly ast.AsPart[] {
  return reading(source, 'AsParts', (made) => made as readonly ast.AsPart[])
}

/** Nodes are still ours here: nobody has seen them. */
function setTrivia(node: object, trivia: ast.Trivia | undefined): void {
  if (trivia) (node as { trivia?: ast.Trivia }).trivia = trivia
  const lines = monoidLines.get(node as ast.Monoid)
  const [identity, combine] = lines?.map((w) => w.value) ?? []
  if (identity || combine)
    (node as { lines?: ast.Monoid['lines'] }).lines = {
      ...(identity && { identity }),
      ...(combine && { combine }),
    }
}
