/**
 * Planning of a composition's nested rules as one tree whose leaves are formats with arguments. Names are assigned
 * later, because labels depend on the number of parts.
 */
import { fail, invariant } from '../../ast/diagnostic.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { add, binary, ceildiv, div, type Expr, int, mul, select, sub, variable } from '../../ir/expr.ts'
import type { Composition, Format, OrderedFormat, PartRule } from '../../ir/format.ts'
import type { Query } from '../../ir/queries.ts'
import { type Arguments, bindArguments, type SpanOption, spanOf } from './format-arguments.ts'
import { checkOver } from './instantiate-format.ts'
import { isIn, type Ranges, rangeOf, within } from './ranges.ts'
import {
  asWritten,
  extentScope,
  type Scope,
  scopeOf,
  sizeOf,
  translate,
  withVariables,
} from './translate-names.ts'
import { bucketWidths } from './widths.ts'

/** More parts than this are a mistake: each is a separate iteration. */
const MAX_PARTS = 256

export interface PlannedLeaf {
  readonly kind: 'leaf'
  readonly format: Format
  readonly args: Arguments
  /** `p0`, `w4`, `rest`: path of distinguishing names from the root. */
  readonly label: readonly string[]
  /** Constants of the enclosing rules; its own are added. */
  readonly constants: ReadonlyMap<string, number>
  readonly ranges: Ranges
}

/** A condition or index before its queries are named. */
export interface Asking {
  readonly expr: Expr
  readonly queries: readonly Query[]
  readonly scope: Scope
}

export type Planned =
  | PlannedLeaf
  | (SpanOption & {
      readonly kind: 'index'
      readonly text: string
      readonly index: Asking
      readonly total: boolean
      readonly holds: readonly Expr[]
      readonly children: readonly Planned[]
    })
  | (SpanOption & {
      readonly kind: 'cases'
      readonly cases: readonly {
        readonly text: string
        /** A conjunction; empty for the rest. */
        readonly where: readonly Asking[]
        readonly child: Planned
      }[]
    })

export interface Plan {
  readonly tree: Planned
  readonly args: Arguments
  /** All bound arguments, including lists and sets. */
  readonly bound: readonly Arguments[]
}

interface Context {
  readonly over: readonly StoredAxis[]
  readonly open: (name: string) => string
  readonly at: SpanOption
  readonly bound: Arguments[]
  parts: number
}

/** Plans the parts of a format or composition. @throws SptError as `instantiate` */
export function planParts(
  format: OrderedFormat,
  args: readonly Expr[],
  over: readonly StoredAxis[],
  open: (name: string) => string,
  at: SpanOption,
): Plan {
  const context: Context = { over, open, at, bound: [], parts: 0 }
  const bound = bindArguments(format, args, open, at)
  const tree = plan(format, bound, { label: [], constants: new Map(), ranges: new Map(), context })
  // A format that cannot hold every coordinate is a part without siblings.
  const where = tree.kind === 'leaf' ? ownCondition(tree, over) : []
  const alone: Planned =
    where.length === 0
      ? tree
      : { kind: 'cases', cases: [{ text: bound.text, where, child: tree }], ...spanOf(format.span) }
  return { tree: alone, args: bound, bound: context.bound }
}

function plan(format: OrderedFormat, args: Arguments, around: Around): Planned {
  const { label, constants, ranges, context } = around
  checkOver(format, context.over, context.at)
  context.bound.push(args)
  if (format.kind === 'format') {
    if (++context.parts > MAX_PARTS) tooMany(`${MAX_PARTS + 1} or more`, format, context)
    return { kind: 'leaf', format, args, label, constants, ranges }
  }
  const own = [...args.values].flatMap(([n, e]) => (e.kind === 'const' ? [[n, e.value] as const] : []))
  return planRules(format.parts, {
    composition: format,
    scope: scopeOf(format, args, context.over),
    ...around,
    constants: new Map([...constants, ...own]),
  })
}

/** The context of a format. */
interface Around {
  readonly label: readonly string[]
  readonly constants: ReadonlyMap<string, number>
  readonly ranges: Ranges
  readonly context: Context
}

interface RuleScope extends Around {
  readonly composition: Composition
  readonly scope: Scope
}

/** The context of a child: `step` is added to its label, and `name` is bound to the constant `value`. */
const under = (p: RuleScope, step: string | null, name: string | null, value: number): RuleScope => ({
  ...p,
  label: step === null ? p.label : [...p.label, step],
  scope: name === null ? p.scope : withVariables(p.scope, [[name, int(value)]]),
  constants: name === null ? p.constants : new Map([...p.constants, [name, value]]),
})

function planRules(rules: readonly PartRule[], place: RuleScope): Planned {
  const only = rules.length === 1
  const cases = rules.map((rule) => planRule(rule, place, only))
  invariant(
    cases.every((c, k) => c.where.length > 0 || k === cases.length - 1),
    'a part that takes the rest comes last',
  )
  const first = cases[0]
  if (first && only && first.where.length === 0) return first.child
  return { kind: 'cases', cases, ...spanOf(place.composition.span) }
}

function planRule(rule: PartRule, place: RuleScope, only: boolean) {
  if (rule.kind === 'partition')
    return { text: `partition ${rule.dim}`, where: [], child: planPartition(rule, place) }
  if (rule.kind === 'bucket')
    return { text: `bucket ${rule.dims.join(', ')}`, where: [], child: planBucket(rule, place) }
  const { context, scope } = place
  const args = rule.use.args.map((a) => argument(a, scope))
  const at = spanOf(rule.use.span, rule.span, context.at.span)
  const bound = bindArguments(rule.use.format, args, context.open, at)
  const name = rule.name ?? rule.use.format.name
  const label = only ? place.label : [...place.label, name]
  const { constants, ranges } = place
  const child = plan(rule.use.format, bound, { label, constants, ranges, context })
  const where: Asking[] = rule.where ? [{ expr: rule.where, queries: rule.queries, scope }] : []
  if (child.kind === 'leaf') where.push(...ownCondition(child, context.over))
  return { text: rule.name === null ? bound.text : `${rule.name} = ${bound.text}`, where, child }
}

/** Translates an argument; a list or set parameter becomes the name among the data. */
function argument(arg: Expr, scope: Scope): Expr {
  const source = arg.kind === 'var' ? scope.sources.get(arg.name) : undefined
  return source === undefined ? translate(arg, scope) : variable(source)
}

function ownCondition(leaf: PlannedLeaf, over: readonly StoredAxis[]): Asking[] {
  const { format, args } = leaf
  return format.where
    ? [{ expr: format.where, queries: format.queries, scope: scopeOf(format, args, over) }]
    : []
}

function planPartition(rule: Extract<PartRule, { kind: 'partition' }>, place: RuleScope): Planned {
  const { context, composition } = place
  const into = constantIn(rule.into, place, 'the number of ranges')
  const dim = composition.over.indexOf(rule.dim)
  const at = spanOf(rule.span, composition.span)
  if (into < 1)
    fail({
      code: 'format/partition',
      message: `${composition.name} partitions ${rule.dim} into ${asWritten(rule.into, into)}`,
      ...spanOf(context.at.span, rule.span),
      expected: 'a positive number of ranges',
      hint: 'omit the partition for one range',
    })
  if (into > MAX_PARTS) tooMany(`${into} ranges`, composition, context)
  const axis = context.over[dim]!
  const ranges = Array.from({ length: into }, (_, p) => rangeOf(axis.extent, p, into))
  const children = ranges.map((range, p) => {
    const inside = under(place, into === 1 ? null : `p${p}`, rule.as, p)
    return planRules(rule.parts, { ...inside, ranges: within(place.ranges, dim, range) })
  })
  if (into === 1) return children[0]!
  // Expressed in the format's names, as all queries are: names of the kernel may clash with its parameters.
  const index = div(variable(rule.dim), ceildiv(variable(sizeOf(rule.dim)), int(into)))
  return {
    kind: 'index',
    text: `partition ${rule.dim} into ${into}`,
    index: { expr: index, queries: [], scope: place.scope },
    total: true,
    holds: ranges.map((r) => isIn(variable(axis.name), r)),
    children,
    ...at,
  }
}

function planBucket(rule: Extract<PartRule, { kind: 'bucket' }>, place: RuleScope): Planned {
  const { composition, context } = place
  const widths = bucketWidths(rule, composition, (e, what) => constantIn(e, place, what), context.at)
  if (widths.length > MAX_PARTS) tooMany(`${widths.length} buckets`, composition, context)
  const text = `bucket ${rule.dims.join(', ')} by length into ${widths.join(', ')}${rule.split ? ' split' : ''}`
  const children = widths.map((w) => planRules(rule.parts, under(place, `w${w}`, rule.as, w)))
  const by = rule.dims.map((d) => variable(d))
  const rest = composition.over.filter((d) => !rule.dims.includes(d)).map((d) => variable(d))
  const of = rest.length > 0 ? rest : by
  // No dimension or parameter can have these names.
  const length: Query = { kind: 'count', name: '#length', of, by }
  const rank: Query = { kind: 'rank', name: '#rank', of, by }
  const last = widths[widths.length - 1]!
  // All pieces of a split segment have the last width, except the last piece.
  const piece = sub(variable(length.name), mul(div(variable(rank.name), int(last)), int(last)))
  const measure = rule.split ? piece : variable(length.name)
  const index = (rule.split ? widths.slice(0, -1) : widths)
    .map((w) => select(binary('gt', measure, int(w)), int(1), int(0)))
    .reduce(add, int(0))
  return {
    kind: 'index',
    text,
    index: { expr: index, queries: rule.split ? [length, rank] : [length], scope: place.scope },
    total: rule.split,
    holds: [],
    children,
    ...spanOf(rule.span, composition.span),
  }
}

function constantIn(e: Expr, place: RuleScope, what: string): number {
  const { composition, scope, context } = place
  const value = translate(e, extentScope(scope, context.over))
  if (value.kind === 'const' && Number.isInteger(value.value)) return value.value
  return fail({
    code: 'format/not-constant',
    message: `${what} of ${composition.name} is not a constant`,
    ...spanOf(e.span, composition.span, context.at.span),
    expected: 'an integer, from constants and arguments',
    hint: 'the number of parts must be known before there are data',
  })
}

function tooMany(found: string, format: OrderedFormat, context: Context): never {
  return fail({
    code: 'format/too-many-parts',
    message: `${format.name} has ${found}`,
    ...spanOf(context.at.span, format.span),
    expected: `at most ${MAX_PARTS} parts`,
    hint: 'each part is a separate iteration: use fewer ranges or buckets',
  })
}
