/** Generated ASTs in the parser's normal form: what `parse` can return, spans aside. */
import fc from 'fast-check'
import * as ast from '../../src/ast/nodes/nodes.ts'
import { BIND_TARGETS, ROLES, SCALAR_TYPES } from '../../src/ast/nodes/nodes.ts'
import type { Syntax, ValueSyntax } from '../../src/ast/nodes/step-syntax.ts'
import { printStep } from '../../src/ast/print/print.ts'
import { STEP_SYNTAX } from '../../src/schedule/steps/language.ts'

const span = { source: 'generated', start: 0, end: 0 }
type Arb<T> = fc.Arbitrary<T>

const RESERVED = new Set('let if else iterate as and or not true false inf nan'.split(' '))
/** Contextual keywords are names too, and so are words that begin with a keyword. */
const WORDS =
  'a b i j A B x1 _ in out size map by at to over fill axis buffer kernel split bind use unordered letter iffy ' +
  'asx andor informal nano notes format from inverse combine identity accumulate local S R after part where ' +
  'partition bucket sort within define extends length into full compact each merge parts of real list set value count for padded with mask call repeat'
const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORDS.split(' ')) },
  { weight: 1, arbitrary: fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/).filter((s) => !RESERVED.has(s)) },
)
const ident: Arb<ast.Ident> = name.map((n) => ({ name: n, span }))
const idents = (minLength: number, maxLength = 3): Arb<ast.Ident[]> =>
  fc.array(ident, { minLength, maxLength })
const typeName: Arb<ast.TypeName> = fc.constantFrom(...SCALAR_TYPES).map((t) => ({ name: t, span }))

// Comments -----------------------------------------------------------------------------------------------------

const lineComment = fc.stringMatching(/^\/\/[ -~]{0,8}$/).map((t) => t.trimEnd())
const blockComment = fc.constantFrom('/* c */', '/**/', '/* a\n   b */', '/* // */', '/* "é😀{ */')
const anyComment = fc.oneof(lineComment, blockComment)
const comment = (text: string, blank: boolean): ast.Comment => ({ text, span, ...(blank && { blank }) })

/** Comments on lines of their own; the first one's blank line counts only where something stands before it. */
const ownLines = (first: boolean): Arb<ast.Comment[]> =>
  fc
    .array(fc.record({ text: anyComment, blank: fc.boolean() }), { maxLength: 2 })
    .map((list) => list.map((c, k) => comment(c.text, c.blank && !(first && k === 0))))
/** Comments at the end of a line: only the last may be a line comment. */
const sameLine: Arb<ast.Comment[]> = fc
  .tuple(fc.array(blockComment, { maxLength: 1 }), fc.option(lineComment, { nil: undefined }))
  .map(([blocks, last]) => [...blocks, ...(last === undefined ? [] : [last])].map((t) => comment(t, false)))

const rarely = <T>(a: Arb<T>, otherwise: T): Arb<T> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(otherwise) }, { weight: 1, arbitrary: a })

interface Place {
  readonly first: boolean
  /** The node has a block, or an `if` two. */
  readonly blocks: 0 | 1 | 2
  /** Whether its blocks hold anything. */
  readonly filled: readonly boolean[]
}
function trivia({ first, blocks, filled }: Place): Arb<ast.Trivia | undefined> {
  return fc
    .record({
      blank: rarely(fc.boolean(), false),
      before: rarely(ownLines(first), []),
      after: rarely(sameLine, []),
      open: blocks > 0 ? rarely(sameLine, []) : fc.constant([]),
      end: blocks > 0 ? rarely(ownLines(!filled[0]), []) : fc.constant([]),
      openElse: blocks > 1 ? rarely(sameLine, []) : fc.constant([]),
      endElse: blocks > 1 ? rarely(ownLines(!filled[1]), []) : fc.constant([]),
    })
    .map((t) => {
      const lists = Object.entries(t).filter(([, v]) => Array.isArray(v) && v.length > 0)
      const blank = t.blank && !(first && t.before.length === 0)
      if (lists.length === 0 && !blank) return undefined
      return { ...(blank && { blank }), ...Object.fromEntries(lists) }
    })
}

const with_ = <T extends object>(node: T, t: ast.Trivia | undefined): T => (t ? { ...node, trivia: t } : node)

/** Gives each of a list of siblings its comments. */
function dressed<T extends { readonly trivia?: ast.Trivia | undefined }>(
  nodes: readonly T[],
  place: (n: T) => Pick<Place, 'blocks' | 'filled'>,
  separate = false,
): Arb<T[]> {
  if (nodes.length === 0) return fc.constant([])
  return fc
    .tuple(...nodes.map((n, k) => trivia({ first: separate || k === 0, ...place(n) })))
    .map((ts) => nodes.map((n, k) => with_(n, ts[k])))
}
const plain = (): Pick<Place, 'blocks' | 'filled'> => ({ blocks: 0, filled: [] })

// Expressions --------------------------------------------------------------------------------------------------

const number: Arb<ast.NumberLit> = fc
  .oneof(
    fc.nat(1000).map((value) => ({ value, float: false })),
    fc.constantFrom(Number.MAX_SAFE_INTEGER, 0).map((value) => ({ value, float: false })),
    fc
      .double({ min: 0, noNaN: true, noDefaultInfinity: true })
      .map((value) => ({ value: Math.abs(value), float: true })),
    fc
      .constantFrom(Number.POSITIVE_INFINITY, Number.NaN, 1, 1e21, 1e-7, 0.5, 5e-324)
      .map((value) => ({ value, float: true })),
  )
  .map((n) => ({ kind: 'number', ...n, span }))

const BINARY = ['or', 'and', 'lt', 'le', 'gt', 'ge', 'eq', 'ne', 'add', 'sub', 'mul', 'div', 'mod'] as const

const { expr, item, access } = fc.letrec<{ expr: ast.Expr; item: ast.Expr; access: ast.Access }>((tie) => ({
  item: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'expr' },
    { weight: 6, arbitrary: tie('expr') },
    { weight: 1, arbitrary: ident.map((list): ast.Expr => ({ kind: 'spread', list, span })) },
    {
      weight: 1,
      arbitrary: fc
        .record({ value: tie('expr'), name: ident, from: tie('expr'), to: fc.option(tie('expr')) })
        .map(({ value, ...each }): ast.Expr => ({ kind: 'repeat', value, each: { ...each, span }, span })),
    },
  ),
  access: fc.record({
    kind: fc.constant('access' as const),
    buffer: ident,
    index: fc.array(tie('expr'), { maxLength: 3 }),
    span: fc.constant(span),
  }),
  expr: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'expr' },
    number,
    fc.boolean().map((value): ast.Expr => ({ kind: 'bool', value, span })),
    name.map((n): ast.Expr => ({ kind: 'name', name: n, span })),
    fc.record({ object: ident, field: ident }).map((f): ast.Expr => ({ kind: 'field', ...f, span })),
    fc
      .record({ op: fc.constantFrom(...BINARY), a: tie('expr'), b: tie('expr') })
      .map((e): ast.Expr => ({ kind: 'binary', ...e, span })),
    fc
      .record({ op: fc.constantFrom('neg' as const, 'not' as const), x: tie('expr') })
      .map((e): ast.Expr => ({ kind: 'unary', ...e, span })),
    fc
      .record({
        fn: ident,
        args: fc.array(tie('item'), { maxLength: 3 }),
        by: rarely(fc.array(tie('item'), { minLength: 1, maxLength: 2 }), undefined),
      })
      .map(({ by, ...e }): ast.Expr => ({ kind: 'call', ...e, ...(by && { by }), span })),
    fc
      .record({
        of: name.map((n): ast.Expr => ({ kind: 'name', name: n, span })),
        parts: fc.array(
          fc.record({
            format: ident,
            args: fc.array(tie('expr'), { maxLength: 2 }),
            where: fc.option(tie('expr')),
            span: fc.constant(span),
          }),
          { minLength: 1, maxLength: 2 },
        ),
      })
      .map(({ of, parts }): ast.Expr => {
        return { kind: 'call', fn: { name: 'fill_ratio', span }, args: [of], parts, span }
      }),
    tie('access'),
  ),
}))

export { expr }

const literal: Arb<ast.Expr> = fc
  .tuple(fc.boolean(), number)
  .map(([negated, x]) => (negated ? { kind: 'unary', op: 'neg', x, span } : x))

/** An axis or dimension of a format, in a list or not. */
const element: Arb<ast.Element> = fc
  .tuple(ident, rarely(expr, undefined))
  .map(([i, index]) => (index ? { ...i, index } : i))
const listNames = (minLength: number): Arb<ast.ListName[]> =>
  fc.array(
    fc.tuple(ident, rarely(fc.boolean(), false)).map(([i, all]): ast.ListName => (all ? { ...i, all } : i)),
    { minLength, maxLength: 3 },
  )
const repeat: Arb<ast.For> = fc.record({
  name: ident,
  from: expr,
  to: fc.option(expr),
  span: fc.constant(span),
})

// Statements ---------------------------------------------------------------------------------------------------

const iter: Arb<ast.Iter> = fc
  .record({
    name: ident,
    axis: fc.option(ident, { nil: undefined }),
    mode: fc.constantFrom('S' as const, 'R' as const),
  })
  .map(({ name: n, axis, mode }) => ({ name: n, axis: axis ?? n, mode, span }))
const reducer: Arb<ast.Ident> = fc.oneof(
  ident,
  fc.constantFrom('+', '*', 'min', 'max', 'and', 'or').map((n) => ({ name: n, span })),
)
const update: Arb<ast.Stmt> = fc
  .tuple(
    fc.array(fc.tuple(access, expr), { minLength: 1, maxLength: 2 }),
    fc.option(reducer, { nil: undefined }),
  )
  .map(([pairs, r]) => {
    const parts = { targets: pairs.map(([t]) => t), values: pairs.map(([, v]) => v), span }
    return r ? { kind: 'reduce', reducer: r, ...parts } : { kind: 'assign', ...parts }
  })

function stmtPlace(s: ast.Stmt | ast.Member): Pick<Place, 'blocks' | 'filled'> {
  if (s.kind === 'iterate') return { blocks: 1, filled: [s.body.length > 0] }
  if (s.kind === 'if') return { blocks: s.else.length > 0 ? 2 : 1, filled: [s.then.length > 0, true] }
  return plain()
}

const { iterate } = fc.letrec<{ stmts: ast.Stmt[]; iterate: ast.Iterate; stmt: ast.Stmt }>((tie) => ({
  iterate: fc
    .record({
      name: ident,
      iters: fc.array(iter, { maxLength: 3 }),
      where: fc.option(expr, { nil: null }),
      body: tie('stmts'),
    })
    .map((s) => ({ kind: 'iterate', ...s, span })),
  stmt: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'stmt' },
    update,
    fc.record({ name: ident, value: expr }).map((s): ast.Stmt => ({ kind: 'let', ...s, span })),
    tie('iterate'),
    fc
      .record({ cond: expr, then: tie('stmts'), else: tie('stmts') })
      .map((s): ast.Stmt => ({ kind: 'if', ...s, span })),
  ),
  stmts: fc.array(tie('stmt'), { maxLength: 2 }).chain((list) => dressed(list, stmtPlace)),
}))

// Declarations -------------------------------------------------------------------------------------------------

const flags = { ordered: fc.boolean(), unique: fc.boolean() }
const defOver = (parent: Arb<ast.Element>): Arb<ast.AxisDef> =>
  fc.oneof(
    fc
      .record({ parent: fc.option(parent), extent: expr })
      .map((d): ast.AxisDef => ({ kind: 'dense_fixed', ...d, span })),
    fc.record({ parent, extent: expr }).map((d): ast.AxisDef => ({ kind: 'bitmap', ...d, span })),
    fc.record({ parent, extent: expr }).map((d): ast.AxisDef => ({ kind: 'dense_variable', ...d, span })),
    fc
      .record({ parent, extent: expr, width: expr, ...flags })
      .map((d): ast.AxisDef => ({ kind: 'sparse_fixed', ...d, span })),
    fc
      .record({ parent: fc.option(parent), extent: expr, ...flags })
      .map((d): ast.AxisDef => ({ kind: 'sparse_variable', ...d, span })),
    idents(2).map((members): ast.AxisDef => ({ kind: 'fused', members, span })),
    fc.record({ base: ident, parent: ident }).map((d): ast.AxisDef => ({ kind: 'attached', ...d, span })),
    fc.record({ base: ident, buffer: ident }).map((d): ast.AxisDef => ({ kind: 'gathered', ...d, span })),
  )
const claims = fc
  .subarray([...ast.AXIS_CLAIMS])
  .map((list) => list.map((c): ast.AxisClaim => ({ name: c, span })))
const axis: Arb<ast.AxisDecl> = fc
  .record({ name: ident, def: defOver(ident), claims: rarely(claims, []) })
  .map((a) => ({ kind: 'axis', ...a, span }))
const formatAxis: Arb<ast.AxisDecl> = fc
  .record({
    name: element,
    def: defOver(element),
    claims: rarely(claims, []),
    padding: rarely(expr, undefined),
    packed: rarely(expr, undefined),
    each: rarely(repeat, undefined),
    list: rarely(fc.constant(true as const), undefined),
  })
  .map(({ padding, packed: bits, each: copies, list, ...a }) => {
    const padded = a.def.kind === 'sparse_fixed' && a.claims.length === 0 && padding && { padding }
    const packed = /^sparse/.test(a.def.kind) && bits && { packed: bits }
    const more = { ...(copies && { each: copies }), ...(list && { list }) }
    return { kind: 'axis', ...a, ...padded, ...packed, ...more, span }
  })
const buffer: Arb<ast.BufferDecl> = fc
  .record({
    name: ident,
    type: typeName,
    axes: idents(0),
    role: fc.constantFrom(...ROLES).map((r) => ({ name: r, span })),
    fill: fc.option(literal),
    accumulate: fc.option(typeName),
  })
  .map((b) => ({ kind: 'buffer', ...b, span }))
const param: Arb<ast.Param> = fc
  .record({ name: ident, type: fc.constantFrom('size' as const, ...SCALAR_TYPES) })
  .map((p) => ({ name: p.name, type: { name: p.type, span }, span }))

const define: Arb<ast.Define> = fc
  .record({ name: ident, params: idents(0), value: expr })
  .map((d) => ({ kind: 'define', ...d, span }))
const kernelCall: Arb<ast.KernelCall> = fc
  .record({
    results: idents(0),
    kernel: ident,
    types: fc.array(typeName, { maxLength: 2 }),
    args: fc.constant(null).chain(() => namedArgs),
    label: fc.option(ident),
  })
  .map((c) => ({ kind: 'kernel_call', ...c, span }))
const copies: Arb<ast.Copies> = fc
  .record({
    count: fc
      .integer({ min: 1, max: 1000 })
      .map((value) => ({ kind: 'number' as const, value, float: false, span })),
    index: ident,
    members: fc
      .array(fc.oneof<Arb<ast.Member>[]>(axis, buffer, kernelCall, iterate), { maxLength: 3 })
      .chain((list) => dressed(list, stmtPlace)),
  })
  .map((c) => ({ kind: 'copies', ...c, span }))
/** `f16 or bf16, f32` in the head of a kernel or schedule. */
const typeChoices: Arb<ast.TypeName[][]> = rarely(
  fc.array(fc.array(typeName, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 }),
  [],
)
const base = rarely<ast.BaseKernel | null>(
  fc.record({ name: ident, types: fc.array(typeName, { maxLength: 2 }) }).map((b) => ({ ...b, span })),
  null,
)
const kernel: Arb<ast.Kernel> = fc
  .record({
    name: ident,
    typeParams: typeChoices.chain((lists) =>
      fc.tuple(...lists.map((types) => ident.map((name): ast.TypeParam => ({ name, types, span })))),
    ),
    params: fc.array(param, { maxLength: 3 }),
    base,
    members: fc
      .array(fc.oneof<Arb<ast.Member>[]>(axis, buffer, define, iterate, kernelCall, copies), { maxLength: 4 })
      .chain((list) => dressed(list, stmtPlace)),
  })
  .map((k) => ({ kind: 'kernel', ...k, span }))

const monoid: Arb<ast.Monoid> = fc.integer({ min: 1, max: 3 }).chain((n) =>
  fc
    .record({
      name: ident,
      fields: fc.array(fc.record({ name: ident, type: typeName, span: fc.constant(span) }), {
        minLength: n,
        maxLength: n,
      }),
      identity: fc.array(expr, { minLength: n, maxLength: n }),
      left: ident,
      right: ident,
      result: fc.array(expr, { minLength: n, maxLength: n }),
      lines: fc.tuple(
        trivia({ first: true, blocks: 0, filled: [] }),
        trivia({ first: false, blocks: 0, filled: [] }),
      ),
    })
    .map(({ lines: [identity, combine], ...m }) => ({
      kind: 'monoid',
      ...m,
      ...((identity || combine) && {
        lines: { ...(identity && { identity }), ...(combine && { combine }) },
      }),
      span,
    })),
)

const coordMap = (kind: ast.CoordMap['kind'], first: boolean): Arb<ast.CoordMap> =>
  fc
    .record({
      from: listNames(1),
      to: fc.array(item, { minLength: 1, maxLength: 3 }),
      t: trivia({ first, blocks: 0, filled: [] }),
    })
    .map(({ t, ...m }) => with_({ kind, ...m, span }, t))
const formatParam: Arb<ast.FormatParam> = fc
  .record({
    name: ident,
    type: fc.constantFrom('integer' as const, ...ast.FORMAT_PARAM_TYPES),
    default: fc.option(expr),
  })
  .map((p) => ({ ...p, default: p.type === 'integer' || p.type === 'real' ? p.default : null, span }))

const line = trivia({ first: false, blocks: 0, filled: [] })
const sort: Arb<ast.Sort> = fc
  .record({ dim: element, by: expr, within: fc.option(expr), place: ident, at: ident })
  .map((s) => ({ kind: 'sort', ...s, span }))
const mask: Arb<ast.Mask> = fc.tuple(ident, line).map(([name, t]) => with_({ kind: 'mask', name, span }, t))
const holds: Arb<ast.Holds> = fc.tuple(expr, line).map(([cond, t]) => with_({ kind: 'where', cond, span }, t))
const description: Arb<ast.Description> = fc
  .tuple(
    rarely(fc.array(sort, { minLength: 1, maxLength: 2 }), []).chain((list) => dressed(list, plain)),
    fc.array(formatAxis, { maxLength: 3 }),
  )
  .chain(([sorts, axes]) =>
    fc.record({
      kind: fc.constant('description' as const),
      sorts: fc.constant(sorts),
      axes: dressed(axes, plain),
      map: coordMap('map', axes.length + sorts.length === 0),
      inverse: coordMap('inverse', false),
      mask: rarely(mask, null),
      where: fc.option(holds),
    }),
  )

const use = { format: ident, args: fc.array(expr, { maxLength: 2 }) }
const formatUse: Arb<ast.FormatUse> = fc.record(use).map((u) => ({ ...u, span }))
const width: Arb<ast.Width> = fc
  .record({ value: expr, power: fc.option(expr), doubling: fc.boolean() })
  .map((w) => ({ ...w, span }))
const rulePlace = (r: ast.Rule): Pick<Place, 'blocks' | 'filled'> =>
  r.kind === 'part' ? plain() : { blocks: 1, filled: [true] }
const { rules } = fc.letrec<{ rules: ast.Rule[]; rule: ast.Rule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'rule' },
    fc
      .record({ name: fc.option(ident), use: formatUse, where: fc.option(expr) })
      .map((r): ast.Rule => ({ kind: 'part', ...r, span })),
    fc
      .record({ dim: element, into: expr, as: fc.option(ident), rules: tie('rules') })
      .map((r): ast.Rule => ({ kind: 'partition', ...r, span })),
    fc
      .record({
        dims: fc.array(element, { minLength: 1, maxLength: 2 }),
        widths: fc
          .array(width, { minLength: 1, maxLength: 3 })
          .map((list) => list.map((w, k) => (k === 0 ? { ...w, doubling: false } : w))),
        as: ident,
        split: fc.boolean(),
        rules: tie('rules'),
      })
      .map((r): ast.Rule => ({ kind: 'bucket', ...r, span })),
  ),
  rules: fc.array(tie('rule'), { minLength: 1, maxLength: 2 }).chain((list) => dressed(list, rulePlace)),
}))
const composition: Arb<ast.Composition> = rules.map((list) => ({ kind: 'composition', rules: list }))

const format: Arb<ast.Format> = fc
  .record({
    name: ident,
    params: fc.array(formatParam, { maxLength: 2 }),
    over: listNames(1),
    body: fc.oneof<Arb<ast.Format['body']>[]>(description, composition),
  })
  .map((f) => ({ kind: 'format', ...f, span }))

// Schedules ----------------------------------------------------------------------------------------------------

const loop: Arb<ast.LoopRef> = fc.record({ nest: fc.option(ident), name: ident, span: fc.constant(span) })
const args = fc.array(expr, { maxLength: 2 })
const instance: Arb<ast.Instance> = fc.record({ name: ident, args }).map((i) => ({ ...i, span }))

/** Lengths in a step: of lists without a fixed length, and of groups; 1 for a step without groups. */
interface Lengths {
  readonly lists: number
  readonly groups: number
}

/** The arguments of a syntax. */
const takes = (syntax: readonly Syntax[], n: Lengths): Arb<ast.StepArgument[]> =>
  fc
    .tuple(
      ...syntax.map((s): Arb<ast.StepArgument[]> => {
        if (typeof s === 'string') return fc.constant([s])
        if ('optional' in s) return fc.option(takes(s.optional, n)).map((given) => given ?? [])
        return stepValue(s.value, n).map((value) => [{ field: s.field, value }])
      }),
    )
    .map((parts) => parts.flat())

/** A value, or a group of values in its place. */
const grouped = (value: Arb<ast.StepValue>, { groups }: Lengths): Arb<ast.StepValue> =>
  groups === 1
    ? value
    : fc.oneof(
        value,
        fc
          .array(value, { minLength: groups, maxLength: groups })
          .map((items): ast.StepValue => ({ kind: 'group', items, span })),
      )

const loopValue = loop.map((l) => ({ kind: 'loop', loop: l }) as const)
const loopLists = (length: number, { groups }: Lengths): Arb<ast.StepValue> => {
  const listOf = (loops: readonly ast.LoopRef[]): ast.StepValue => ({
    kind: 'list',
    parentheses: true,
    items: loops.map((l) => ({ kind: 'loop', loop: l })),
  })
  const one = fc.array(loop, { minLength: length, maxLength: length }).map(listOf)
  if (groups === 1) return one
  const inNests = fc
    .tuple(
      fc.array(ident, { minLength: groups, maxLength: groups }),
      fc.array(ident, { minLength: length, maxLength: length }),
    )
    .map(([nests, names]): ast.StepValue => {
      return {
        kind: 'group',
        items: nests.map((nest) => listOf(names.map((l) => ({ nest, name: l, span })))),
        span,
      }
    })
  return fc.oneof(one, inNests)
}

function stepValue(v: ValueSyntax, n: Lengths): Arb<ast.StepValue> {
  switch (v.kind) {
    case 'loop':
      return grouped(loopValue, n)
    case 'name': {
      const one = ident.map((name): ast.StepValue => ({ kind: 'name', of: v.of, name }))
      return grouped(one, n)
    }
    case 'integer':
      return grouped(
        expr.map((value) => ({ kind: 'integer', value, operand: v.operand })),
        n,
      )
    case 'place':
      return fc.oneof(
        stepValue({ kind: 'name', of: 'nest' }, { ...n, groups: 1 }),
        fc.integer({ min: 1, max: 99 }).map((means) => ({ kind: 'word', text: `${means}`, means }) as const),
      )
    case 'binding':
      return fc.constantFrom(...BIND_TARGETS).chain((to) =>
        grouped(
          loop.map((l) => ({ kind: 'binding', loop: l, to })),
          n,
        ),
      )
    case 'word':
      return fc.constant({ kind: 'word', text: v.text, means: v.means })
    case 'instance':
      return instance.map((i) => ({ kind: 'instance', of: v.of, use: i }))
    case 'list': {
      const length = typeof v.count === 'object' ? v.count.times * n.lists : (v.count ?? n.lists)
      if (v.parentheses && v.of.kind === 'loop') return loopLists(length, n)
      const groups = v.of.kind === 'binding' ? n.groups : 1
      return fc
        .array(stepValue(v.of, { ...n, groups }), { minLength: length, maxLength: length })
        .map((items) => ({ kind: 'list', parentheses: v.parentheses, items }))
    }
    case 'data':
      throw new Error('data have no text')
  }
}

const field: Arb<ast.Expr> = fc
  .record({ object: ident, field: ident })
  .map((f) => ({ kind: 'field', ...f, span }))
const zero: ast.Expr = { kind: 'number', value: 0, float: false, span }
const useGroup = (length: number): Arb<ast.UseArgument> => {
  const items = fc.array(
    fc.oneof(
      field,
      ident.map((n): ast.Expr => ({ kind: 'name', name: n.name, span })),
    ),
    {
      minLength: length,
      maxLength: length,
    },
  )
  return items.map((list) => ({ kind: 'group', items: list, span }))
}
/** Arguments by place come before those by name. */
const namedArgsOf = <V>(value: Arb<V>): Arb<ast.NamedArg<V>[]> =>
  fc
    .tuple(fc.array(value, { maxLength: 2 }), fc.array(fc.tuple(ident, value), { maxLength: 2 }))
    .map(([place, named]) => [
      ...place.map((value) => ({ name: null, value, span })),
      ...named.map(([name, value]) => ({ name, value, span })),
    ])
/** A call of a schedule or a schedule function. */
const useCall = fc
  .integer({ min: 2, max: 3 })
  .chain((length) =>
    fc.record({
      schedule: ident,
      args: namedArgsOf(fc.oneof<Arb<ast.UseArgument>[]>(expr, field, rarely(useGroup(length), zero))),
      results: rarely(idents(1), []),
      of: rarely<Pick<ast.UsedCall, 'kernel' | 'at'>>(
        ident.map((kernel) => ({ kernel, at: { name: 'part', span } })),
        {},
      ),
    }),
  )
  .map(({ of, ...call }): ast.UsedCall => ({ ...call, ...of }))

/** One generator for each step, by its word or kind; those with a word follow from their syntax. */
const words = Object.values(STEP_SYNTAX).map(({ word, forms }): [string, Arb<ast.Step>] => [
  word,
  fc
    .tuple(
      fc.constantFrom(...forms),
      fc.record({ lists: fc.integer({ min: 1, max: 3 }), groups: rarely(fc.integer({ min: 2, max: 3 }), 1) }),
    )
    .chain(([form, n]) => takes(form, n))
    .map((given) => ({ kind: 'step', word, args: given, span })),
])
const others: { readonly [K in Exclude<ast.Step['kind'], 'each' | 'step'>]: Arb<ast.Step> } = {
  as: fc
    .record({
      buffer: ident,
      parts: fc.array(
        fc.record({ ...use, where: fc.option(expr) }).map((p) => ({ ...p, span })),
        { minLength: 1, maxLength: 3 },
      ),
      carried: fc.array(ident, { maxLength: 3 }),
      live: fc.option(
        fc.record({
          inPlace: fc.boolean(),
          capacity: fc.option(
            fc.record({
              positions: fc.array(expr, { minLength: 1, maxLength: 3 }),
              inAll: fc.boolean(),
              span: fc.constant(span),
            }),
          ),
          span: fc.constant(span),
        }),
      ),
    })
    .map((s) => ({ kind: 'as', ...s, span })),
  merge_parts: ident.map((b) => ({ kind: 'merge_parts', buffer: b, span })),
  use: useCall.map((s) => ({ kind: 'use', ...s, span })),
}
export const STEPS: ReadonlyMap<string, Arb<ast.Step>> = new Map([...words, ...Object.entries(others)])
const plainStep = fc.oneof(...STEPS.values())
const stepPlace = (s: ast.Step): Pick<Place, 'blocks' | 'filled'> =>
  s.kind === 'each' ? { blocks: 1, filled: [s.steps.length > 0] } : plain()
/** `each part` and `each nest`, with comments in it or, to fit on one line, without. */
const each = (inside: (list: ast.Step[]) => Arb<ast.Step[]>): Arb<ast.Step> =>
  fc.letrec<{ each: ast.Step; steps: ast.Step[] }>((tie) => ({
    each: fc
      .record({ what: fc.constantFrom('part', 'nest'), buffer: ident, as: ident, steps: tie('steps') })
      .map((s): ast.Step => ({ kind: 'each', ...s, span })),
    steps: fc
      .array(fc.oneof({ maxDepth: 1, depthIdentifier: 'each' }, plainStep, tie('each')), { maxLength: 3 })
      .chain(inside),
  })).each
export const step: Arb<ast.Step> = fc.oneof(
  { weight: 9, arbitrary: plainStep },
  { weight: 1, arbitrary: each(fc.constant) },
)
const dressedSteps = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: plainStep },
      { weight: 1, arbitrary: each((list) => dressed(list, stepPlace)) },
    ),
    { maxLength: 5 },
  )
  .chain((list) => dressed(list, stepPlace))
const scheduleParams: Arb<ast.ScheduleParam[]> = fc.array(
  fc.record({
    name: ident,
    kind: rarely(fc.constantFrom(...ast.PARAM_KINDS), 'size' as const),
    default: fc.option(expr),
    span: fc.constant(span),
  }),
  { maxLength: 2 },
)
const schedule: Arb<ast.Schedule> = fc
  .record({
    kernel: ident,
    types: typeChoices,
    name: ident,
    params: scheduleParams,
    steps: dressedSteps,
  })
  .map((s) => ({ kind: 'schedule', ...s, span }))

const scheduleFunction: Arb<ast.ScheduleFunction> = fc
  .record({ name: ident, params: scheduleParams, results: rarely(idents(1), []), steps: dressedSteps })
  .map((f) => ({ kind: 'function', ...f, span }))

// Choices ------------------------------------------------------------------------------------------------------

const namedArgs: Arb<ast.NamedArg[]> = namedArgsOf(expr)
const scheduleCall: Arb<ast.ScheduleCall> = fc
  .record({ schedule: ident, args: namedArgs })
  .map((c) => ({ ...c, span }))
const calls: Arb<Pick<ast.Branch, 'isFastest' | 'calls'>> = fc.oneof(
  scheduleCall.map((c) => ({ isFastest: false, calls: [c] })),
  fc
    .array(scheduleCall, { maxLength: 3 })
    .chain((list) => dressed(list, plain))
    .map((list) => ({ isFastest: true, calls: list })),
)
const branch = (
  cond: Arb<ast.Expr | null>,
  origin: Arb<ast.Path | null> = fc.constant(null),
): Arb<ast.Branch> =>
  fc.tuple(cond, calls, origin).map(([c, called, from]) => ({ cond: c, ...called, origin: from, span }))
const branchPlace = (b: ast.Branch): Pick<Place, 'blocks' | 'filled'> =>
  b.isFastest ? { blocks: 1, filled: [b.calls.length > 0] } : plain()

// Dispatch tables: their texts are quoted as paths are.
const quoted: Arb<ast.Path> = fc
  .constantFrom('a', 'NVIDIA H200', '2026-11-29')
  .map((value) => ({ value, span }))
const natural: Arb<ast.NumberLit> = fc
  .nat({ max: 99 })
  .map((value) => ({ kind: 'number', value, float: false, span }))
const originField: Arb<ast.OriginField> = fc
  .record({ name: ident, values: fc.array(fc.oneof(quoted, natural), { minLength: 1, maxLength: 3 }) })
  .map((f) => ({ ...f, span }))
const origin: Arb<ast.Origin> = fc
  .record({
    name: quoted,
    status: ident,
    fields: fc.array(originField, { maxLength: 3 }).chain((list) => dressed(list, plain)),
  })
  .map((o) => ({ ...o, span }))
const table: Arb<ast.DispatchTable> = fc
  .record({
    kernel: ident,
    types: typeChoices,
    hash: fc.option(quoted),
    items: fc
      .tuple(
        fc.array(origin, { maxLength: 2 }),
        fc.array(branch(expr, fc.option(quoted)), { maxLength: 3 }),
        fc.option(branch(fc.constant(null), fc.option(quoted))),
      )
      .chain(([origins, when, otherwise]) =>
        dressed<ast.Origin | ast.Branch>([...origins, ...when, ...(otherwise ? [otherwise] : [])], (x) =>
          'cond' in x ? branchPlace(x) : { blocks: 1, filled: [x.fields.length > 0] },
        ),
      ),
  })
  .map((t) => ({ kind: 'table', ...t, span }))
const choice: Arb<ast.Dispatch> = fc
  .tuple(
    ident,
    ident,
    scheduleParams,
    fc.array(branch(expr), { maxLength: 3 }),
    fc.option(branch(fc.constant(null))),
    typeChoices,
  )
  .chain(([kernel, name, params, when, otherwise, types]) =>
    dressed(otherwise ? [...when, otherwise] : when, branchPlace).chain((branches) =>
      fc.boolean().map(
        (isExtension): ast.Dispatch => ({
          kind: 'choice',
          by: 'rules',
          kernel,
          types,
          name,
          params: isExtension ? [] : params,
          isExtension,
          table: null,
          branches,
          span,
        }),
      ),
    ),
  )

// Spaces -------------------------------------------------------------------------------------------------------

/** Words that are keywords after a name, or after the item before: here they cannot be all that names can. */
const spaceIdent = ident.filter((n) => !['in', 'from', 'by'].includes(n.name))
const spaceStep = plainStep.filter(
  (s) => s.kind !== 'use' && !/^(\w+ (in|from)|only where)\b/.test(printStep(s)),
)
const useOption: Arb<ast.UseOption> = fc
  .tuple(useCall, spaceIdent, fc.option(expr))
  .map(([call, schedule, where]) => ({ ...call, schedule, where, span }))
const widths: Arb<ast.Width[]> = fc
  .array(width, { minLength: 1, maxLength: 3 })
  .map((list) => list.map((w, k) => (k === 0 ? { ...w, doubling: false } : w)))
const numberList: Arb<ast.NumberList> = fc.oneof(
  widths.map((list): ast.NumberList => ({ kind: 'list', widths: list })),
  fc
    .record({ from: expr, to: expr, by: fc.option(expr) })
    .map((r): ast.NumberList => ({ kind: 'range', ...r })),
)
const asPart: Arb<ast.AsPart> = fc.record({ ...use, where: fc.option(expr) }).map((p) => ({ ...p, span }))
const formatOption: Arb<ast.FormatOption> = fc
  .record({ parts: fc.array(asPart, { minLength: 1, maxLength: 2 }), where: fc.option(expr) })
  .map((o) => ({ ...o, span }))
const spacePlace = (s: ast.SpaceItem): Pick<Place, 'blocks' | 'filled'> =>
  s.kind === 'each' ? stepPlace(s) : plain()
const { groups: spaceGroups, steps: spaceSteps } = fc.letrec<{
  groups: ast.StepGroup[]
  step: ast.SpaceStep
  steps: ast.SpaceStep[]
}>((tie) => ({
  step: fc.oneof(
    { maxDepth: 1, depthIdentifier: 'group' },
    spaceStep as Arb<ast.SpaceStep>,
    each((list) => dressed(list, stepPlace)) as Arb<ast.SpaceStep>,
    fc
      .array(useOption, { minLength: 1, maxLength: 3 })
      .map((options): ast.SpaceStep => ({ kind: 'uses', options, span })),
    tie('groups').map((groups): ast.SpaceStep => ({ kind: 'either', groups, span })),
  ),
  steps: fc.array(tie('step'), { maxLength: 3 }).chain((list) => dressed(list, spacePlace)),
  groups: fc.array(
    fc.record({ steps: tie('steps'), where: fc.option(expr) }).chain((g) =>
      trivia({ first: true, blocks: 1, filled: [g.steps.length > 0] }).map((t) => {
        const inside = t && { ...(t.open && { open: t.open }), ...(t.end && { end: t.end }) }
        return with_({ ...g, span }, inside && Object.keys(inside).length > 0 ? inside : undefined)
      }),
    ),
    { minLength: 1, maxLength: 3 },
  ),
}))
const spaceItem: Arb<ast.SpaceItem> = fc.oneof<Arb<ast.SpaceItem>[]>(
  fc
    .record({ name: spaceIdent, options: fc.array(formatOption, { minLength: 1, maxLength: 3 }) })
    .map((f) => ({ kind: 'formats', ...f, span })),
  fc
    .record({ name: spaceIdent, values: numberList, where: fc.option(expr) })
    .map((n) => ({ kind: 'numbers', ...n, span })),
  expr.map((cond) => ({ kind: 'only', cond, span })),
  spaceGroups.map((groups) => ({ kind: 'either', groups, span })),
)
const space: Arb<ast.Space> = fc
  .tuple(
    ident,
    ident,
    scheduleParams,
    fc.array(spaceItem, { maxLength: 3 }).chain((list) => dressed(list, spacePlace)),
    spaceSteps,
    typeChoices,
  )
  .map(([kernel, name, params, items, steps, types]) => {
    return {
      kind: 'choice',
      by: 'search',
      kernel,
      types,
      name,
      params,
      items: items.length > 0 ? items : steps,
      span,
    }
  })

// Files --------------------------------------------------------------------------------------------------------

const importDecl: Arb<ast.Import> = fc
  .record({
    path: fc.stringMatching(/^[ -~é]{0,8}$/).map((p) => p.replaceAll('"', '')),
    names: fc.option(
      fc.array(
        fc
          .record({ name: ident, local: fc.option(ident, { nil: undefined }) })
          .map((n) => ({ name: n.name, local: n.local ?? n.name, span })),
        { minLength: 1, maxLength: 3 },
      ),
    ),
  })
  .map((i) => ({ kind: 'import', path: { value: i.path, span }, names: i.names, span }))

// Memories and instructions ------------------------------------------------------------------------------------

const some = <T>(arb: Arb<T>): Arb<T[]> => fc.array(arb, { minLength: 1, maxLength: 3 })
const shape = some(expr)
const need: Arb<ast.Need> = fc
  .record({ name: ident, args: fc.array(fc.constantFrom('16', '8', 'f16', 'f32'), { maxLength: 3 }) })
  .map((n) => ({ ...n, span }))
const needs = fc.array(need, { maxLength: 2 })
const target = fc.constantFrom('cuda', 'wgsl').map((name) => ({ name, span }))
const code = fc.string().map((s) => ({ name: `a${s.replaceAll('`', '"')}z`, span }))
const tileParams: Arb<ast.TileParam[]> = fc.array(
  fc.record({ name: ident, types: fc.option(some(typeName)) }).map((p) => ({ ...p, span })),
  { maxLength: 2 },
)
const ofParams = fc.oneof<Arb<ast.Limit | ast.Examples>[]>(
  expr.map((cond) => ({ kind: 'limit', cond, span })),
  some(args).map((of) => ({ kind: 'examples', of, span })),
)
/** A type, or a parameter that stands for one. */
const elementType = (params: readonly ast.TileParam[]): Arb<ast.Ident> =>
  fc.oneof(typeName, ...params.flatMap((p) => (p.types ? [fc.constant(p.name)] : [])))
const memoryText: Arb<ast.MemoryText> = fc
  .record({ what: fc.constantFrom<ast.MemoryText['what'][]>('type', 'fill'), target, needs, code })
  .map((t) => ({ kind: 'text', ...t, span }))
const memory: Arb<ast.Memory> = tileParams
  .chain((params) =>
    fc.record({
      name: ident,
      params: fc.constant(params),
      type: elementType(params),
      shape,
      scope: ident,
      threads: fc.option(expr),
      replicated: fc.boolean(),
      aligned: fc.option(expr),
      items: fc
        .array(
          fc.oneof<Arb<ast.MemoryItem>[]>(
            memoryText,
            ofParams,
            fc
              .record({ lane: ident, slot: ident, to: some(expr) })
              .map((m) => ({ kind: 'element', ...m, span })),
            fc.record({ from: some(ident), to: expr }).map((m) => ({ kind: 'address', ...m, span })),
          ),
          { maxLength: 2 },
        )
        .chain((list) => dressed(list, plain)),
    }),
  )
  .map((m) => ({ kind: 'memory', ...m, span }))
const instrText: Arb<ast.InstrText> = fc
  .record({
    what: fc.constantFrom<ast.InstrText['what'][]>('run', 'commit', 'prepare', 'publish', 'expect', 'wait'),
    target,
    from: fc.option(fc.constantFrom(7.5, 8, 9)),
    needs,
    code,
  })
  .map((t) => ({ kind: 'text', ...t, span }))
const precision: Arb<ast.Precision> = expr.map((bits) => ({ kind: 'precision', bits, span }))
const instr: Arb<ast.Instr> = tileParams
  .chain((params) =>
    fc.record({
      name: ident,
      params: fc.constant(params),
      operands: some(
        fc
          .record({
            name: ident,
            type: elementType(params),
            shape,
            memories: some(instance),
            packed: fc.option(expr),
            aligned: fc.option(expr),
            ascending: fc.option(expr),
            mapped: fc.option(fc.record({ swizzle: fc.option(expr) })),
            fenced: fc.boolean(),
          })
          .map((o) => ({ ...o, span })),
      ),
      threads: fc.option(expr),
      words: fc
        .subarray(['asynchronous', 'ordered', 'counted', 'atomic'])
        .map((ws) => ws.map((name) => ({ name, span }))),
      items: fc
        .array(fc.oneof<Arb<ast.InstrItem>[]>(iterate, instrText, precision, ofParams), { maxLength: 3 })
        .chain((list) => dressed(list, (x) => (x.kind === 'iterate' ? stmtPlace(x) : plain()))),
    }),
  )
  .map((s) => ({ kind: 'instr', ...s, span }))

const decl: Arb<Decl> = fc.oneof<Arb<Decl>[]>(
  kernel,
  monoid,
  format,
  schedule,
  scheduleFunction,
  choice,
  space,
  table,
  memory,
  instr,
)

type Decl = ast.File['decls'][number]

function inside(d: Decl): number {
  switch (d.kind) {
    case 'kernel':
      return d.members.length
    case 'schedule':
    case 'function':
      return d.steps.length
    case 'choice':
      return d.by === 'rules' ? d.branches.length : d.items.length
    case 'table':
    case 'memory':
    case 'instr':
      return d.items.length
    default:
      return 1
  }
}

function topPlace(d: ast.Import | Decl): Pick<Place, 'blocks' | 'filled'> {
  if (d.kind === 'import') return plain()
  return { blocks: 1, filled: [inside(d) > 0] }
}

export const file: Arb<ast.File> = fc
  .record({
    imports: fc.array(importDecl, { maxLength: 2 }).chain((list) => dressed(list, topPlace, true)),
    decls: fc.array(decl, { maxLength: 3 }).chain((list) => dressed(list, topPlace, true)),
    end: rarely(ownLines(true), []),
  })
  .map(({ imports, decls, end }) =>
    with_({ kind: 'file' as const, imports, decls, span }, end.length > 0 ? { end } : undefined),
  )
