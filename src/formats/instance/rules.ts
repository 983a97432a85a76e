/** Planning of nested rules as a tree of formats with arguments; names depend on the number of parts. */
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { add, binary, ceildiv, div, int, mul, select, sub, variable } from '../../ir/expressions/expr.ts'
import type { Composition, Format, OrderedFormat, PartRule } from '../../ir/formats/format.ts'
import type { Query } from '../../ir/formats/queries.ts'
import { type Arguments, bindArguments, type SpanOption, spanOf } from './format-arguments.ts'
import { checkOver } from './instantiate-format.ts'
import { addRange, bucketWidths, isInRange, type Ranges, rangeOf } from './ranges.ts'
import {
  declaredWithValue,
  extentScope,
  type Scope,
  scopeOf,
  sizeOf,
  translate,
  withVariables,
} from './translate-names.ts'

/** More parts than this are a mistake: each is a separate iteration. */
const MAX_PARTS = 256

export interface PlannedLeaf {
  readonly kind: 'leaf'
  readonly format: Format
  readonly args: Arguments
  /** `p0`, `w4`, `otherDims`: path of distinguishing names from the root. */
  readonly label: readonly string[]
  /** Constants of the enclosing rules; its own are added. */
  readonly constants: ReadonlyMap<string, number>
  readonly ranges: Ranges
}

export interface Selector {
  readonly expr: Expr
  readonly queries: readonly Query[]
  readonly scope: Scope
}

export type Planned =
  | PlannedLeaf
  | (SpanOption & {
      readonly kind: 'index'
      readonly text: string
      readonly index: Selector
      readonly total: boolean
      readonly holds: readonly Expr[]
      readonly children: readonly Planned[]
    })
  | (SpanOption & {
      readonly kind: 'cases'
      readonly cases: readonly {
        readonly text: string
        /** A conjunction; empty for the case that holds all remaining coordinates. */
        readonly where: readonly Selector[]
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
  readonly declareSize: (name: string) => string
  readonly site: SpanOption
  readonly bound: Arguments[]
  parts: number
}

/** Plans the parts of a format or composition. @throws SptError as `instantiate` */
export function planParts(
  format: OrderedFormat,
  args: readonly Expr[],
  over: readonly StoredAxis[],
  declareSize: (name: string) => string,
  site: SpanOption,
): Plan {
  const context: Context = { over, declareSize, site, bound: [], parts: 0 }
  const bound = bindArguments(format, args, declareSize, site)
  const tree = plan(format, bound, { label: [], constants: new Map(), ranges: new Map(), context })
  // A format that cannot hold every coordinate is a part without siblings.
  const condition = tree.kind === 'leaf' ? formatCondition(tree, over) : []
  const root: Planned =
    condition.length === 0
      ? tree
      : {
          kind: 'cases',
          cases: [{ text: bound.text, where: condition, child: tree }],
          ...spanOf(format.span),
        }
  return { tree: root, args: bound, bound: context.bound }
}

function plan(format: OrderedFormat, args: Arguments, surroundings: Surroundings): Planned {
  const { label, constants, ranges, context } = surroundings
  checkOver(format, context.over, context.site)
  context.bound.push(args)
  if (format.kind === 'format') {
    if (++context.parts > MAX_PARTS) rejectPartCount(`${MAX_PARTS + 1} or more`, format, context)
    return { kind: 'leaf', format, args, label, constants, ranges }
  }
  const own = [...args.values].flatMap(([n, e]) => (e.kind === 'const' ? [[n, e.value] as const] : []))
  return planRules(format.parts, {
    composition: format,
    scope: scopeOf(format, args, context.over),
    ...surroundings,
    constants: new Map([...constants, ...own]),
  })
}

interface Surroundings {
  readonly label: readonly string[]
  readonly constants: ReadonlyMap<string, number>
  readonly ranges: Ranges
  readonly context: Context
}

interface RuleScope extends Surroundings {
  readonly composition: Composition
  readonly scope: Scope
}

/** The scope of a child: `step` is added to its label, and `name` is bound to the constant `value`. */
const childScope = (p: RuleScope, step: string | null, name: string | null, value: number): RuleScope => ({
  ...p,
  label: step === null ? p.label : [...p.label, step],
  scope: name === null ? p.scope : withVariables(p.scope, [[name, int(value)]]),
  constants: name === null ? p.constants : new Map([...p.constants, [name, value]]),
})

function planRules(rules: readonly PartRule[], ruleScope: RuleScope): Planned {
  const isOnly = rules.length === 1
  const cases = rules.map((rule) => planRule(rule, ruleScope, isOnly))
  invariant(
    cases.every((c, k) => c.where.length > 0 || k === cases.length - 1),
    'a part that takes the rest comes last',
  )
  const first = cases[0]
  if (first && isOnly && first.where.length === 0) return first.child
  return { kind: 'cases', cases, ...spanOf(ruleScope.composition.span) }
}

function planRule(rule: PartRule, ruleScope: RuleScope, isOnly: boolean) {
  if (rule.kind === 'partition')
    return { text: `partition ${rule.dim}`, where: [], child: planPartition(rule, ruleScope) }
  if (rule.kind === 'bucket')
    return { text: `bucket ${rule.dims.join(', ')}`, where: [], child: planBucket(rule, ruleScope) }
  const { context, scope } = ruleScope
  const args = rule.use.args.map((a) => argument(a, scope))
  const site = spanOf(rule.use.span, rule.span, context.site.span)
  const bound = bindArguments(rule.use.format, args, context.declareSize, site)
  const name = rule.name ?? rule.use.format.name
  const label = isOnly ? ruleScope.label : [...ruleScope.label, name]
  const { constants, ranges } = ruleScope
  const child = plan(rule.use.format, bound, { label, constants, ranges, context })
  const where: Selector[] = rule.where ? [{ expr: rule.where, queries: rule.queries, scope }] : []
  if (child.kind === 'leaf') where.push(...formatCondition(child, context.over))
  return { text: rule.name === null ? bound.text : `${rule.name} = ${bound.text}`, where, child }
}

/** Translates an argument; a list or set parameter becomes the name among the data. */
function argument(arg: Expr, scope: Scope): Expr {
  const source = arg.kind === 'var' ? scope.sources.get(arg.name) : undefined
  return source === undefined ? translate(arg, scope) : variable(source)
}

function formatCondition(leaf: PlannedLeaf, over: readonly StoredAxis[]): Selector[] {
  const { format, args } = leaf
  return format.where
    ? [{ expr: format.where, queries: format.queries, scope: scopeOf(format, args, over) }]
    : []
}

function planPartition(rule: Extract<PartRule, { kind: 'partition' }>, ruleScope: RuleScope): Planned {
  const { context, composition } = ruleScope
  const count = constantIn(rule.into, ruleScope, 'the number of ranges')
  const dim = composition.over.indexOf(rule.dim)
  const site = spanOf(rule.span, composition.span)
  if (count < 1)
    failWith(
      'format/partition',
      `${composition.name} partitions ${rule.dim} into ${declaredWithValue(rule.into, count)}`,
      {
        ...spanOf(context.site.span, rule.span),
        expected: 'a positive number of ranges',
        hint: 'omit the partition for a single range',
      },
    )
  if (count > MAX_PARTS) rejectPartCount(`${count} ranges`, composition, context)
  const axis = context.over[dim]!
  const ranges = Array.from({ length: count }, (_, p) => rangeOf(axis.extent, p, count))
  const children = ranges.map((range, p) => {
    const rangeScope = childScope(ruleScope, count === 1 ? null : `p${p}`, rule.as, p)
    return planRules(rule.parts, { ...rangeScope, ranges: addRange(ruleScope.ranges, dim, range) })
  })
  if (count === 1) return children[0]!
  // Expressed in the format's names, as all queries are: names of the kernel may clash with its parameters.
  const index = div(variable(rule.dim), ceildiv(variable(sizeOf(rule.dim)), int(count)))
  return {
    kind: 'index',
    text: `partition ${rule.dim} into ${count}`,
    index: { expr: index, queries: [], scope: ruleScope.scope },
    total: true,
    holds: ranges.map((r) => isInRange(variable(axis.name), r)),
    children,
    ...site,
  }
}

function planBucket(rule: Extract<PartRule, { kind: 'bucket' }>, ruleScope: RuleScope): Planned {
  const { composition, context } = ruleScope
  const widths = bucketWidths(rule, composition, (e, what) => constantIn(e, ruleScope, what), context.site)
  if (widths.length > MAX_PARTS) rejectPartCount(`${widths.length} buckets`, composition, context)
  const text = `bucket ${rule.dims.join(', ')} by length into ${widths.join(', ')}${rule.split ? ' split' : ''}`
  const children = widths.map((w) => planRules(rule.parts, childScope(ruleScope, `w${w}`, rule.as, w)))
  const by = rule.dims.map((d) => variable(d))
  const otherDims = composition.over.filter((d) => !rule.dims.includes(d)).map((d) => variable(d))
  const counted = otherDims.length > 0 ? otherDims : by
  // No dimension or parameter can have these names.
  const length: Query = { kind: 'count', name: '#length', of: counted, by }
  const rank: Query = { kind: 'rank', name: '#rank', of: counted, by }
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
    index: { expr: index, queries: rule.split ? [length, rank] : [length], scope: ruleScope.scope },
    total: rule.split,
    holds: [],
    children,
    ...spanOf(rule.span, composition.span),
  }
}

function constantIn(e: Expr, ruleScope: RuleScope, what: string): number {
  const { composition, scope, context } = ruleScope
  const value = translate(e, extentScope(scope, context.over))
  if (value.kind === 'const' && Number.isInteger(value.value)) return value.value
  return failWith('format/not-constant', `${what} of ${composition.name} is not a constant`, {
    ...spanOf(e.span, composition.span, context.site.span),
    expected: 'an integer, from constants and arguments',
    hint: 'the number of parts must be known before there are data',
  })
}

function rejectPartCount(count: string, format: OrderedFormat, context: Context): never {
  return failWith('format/too-many-parts', `${format.name} has ${count}`, {
    ...spanOf(context.site.span, format.span),
    expected: `at most ${MAX_PARTS} parts`,
    hint: 'each part is a separate iteration: use fewer ranges or buckets',
  })
}
