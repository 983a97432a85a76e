/** Instantiation of a format or composition with its arguments, over the axes of one kernel. */
import { fail, failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { Names } from '../../ir/expressions/bound-names.ts'
import { all, constant, type Expr, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { AnyFormat, Format, Instance, PartInstance } from '../../ir/formats/format.ts'
import { formatOfOrder } from '../../ir/formats/format.ts'
import { listAndSetDiagnostic } from '../../ir/formats/format-tables.ts'
import type { PartTree } from '../../ir/formats/part-tree.ts'
import { type Query, sourceOf } from '../../ir/formats/queries.ts'
import { type Arguments, type SpanOption, spanOf } from './format-arguments.ts'
import { formatInstance } from './instantiate-format.ts'
import { cutToRanges, withFilledBlocks } from './ranges.ts'
import { type Planned, type PlannedLeaf, planParts, type Selector } from './rules.ts'
import { makeArrayNames, translate, translateQueries } from './translate-names.ts'
import { testInstance } from './trial.ts'

/** A format and its arguments: numbers, and names of lists and sets among the data. */
export interface InstantiateUse {
  readonly format: AnyFormat
  readonly args: readonly (number | string)[]
}

/**
 * Instantiates all parts of a format or composition over `over`, one axis per dimension. `rename(name, label)` returns
 * a unique name in the kernel for each axis, table and measured size of each part: `name_label` if it is free. Names of
 * tables differ from all names of the data.
 *
 * Parts that do not depend on the data are tested on small samples, so that wrong descriptions are rejected here.
 *
 * @throws SptError `format/arguments`, `format/argument-kind`, `format/over`, `format/order`,
 * `format/division-by-zero`, `format/extent`, `format/partition`, `format/bucket-widths`, `format/not-constant`,
 * `format/too-many-parts`, `format/sort-window`, `format/condition`; and with a coordinate `format/not-inverse`,
 * `format/map-range`, `format/overlap`, `format/leak`
 */
export function instantiate(
  use: InstantiateUse,
  over: readonly StoredAxis[],
  rename: (name: string, label: string) => string,
  site: SpanOption = {},
): Instance {
  const args = use.args.map((a) =>
    typeof a === 'string' ? variable(a) : constant(a, Number.isInteger(a) ? 'index' : 'f64'),
  )
  const openSizes = new OpenSizes()
  const plan = planParts(
    formatOfOrder(use.format, over.length),
    args,
    over,
    (name) => openSizes.declare(name),
    site,
  )
  const given = givenData(plan.bound, site)
  const data = new Set(given.map((g) => g.name))
  const leaves = leavesOf(plan.tree)
  const labels = labelsOf(leaves)
  const sizes = openSizes.assignNames(leaves, labels, rename)
  const queryName = queryNames()
  const cutParts = new Set<number>()
  const parts = leaves.map((leaf, k): PartInstance => {
    const label = labels[k]!
    const leafArgs = withSizes(leaf.args, sizes)
    const names = {
      axis: (name: string) => rename(name, label),
      arrayNames: makeArrayNames(leaf.format, label, data, rename),
      query: queryName,
    }
    const uncut = formatInstance(leaf.format, leafArgs, over, names, site)
    const instance = cutToRanges(uncut, over, leaf.ranges)
    if (instance !== uncut) cutParts.add(k)
    return {
      label,
      instance: { ...instance, constants: new Map([...leaf.constants, ...instance.constants]) },
    }
  })
  const numbers = new Map(leaves.map((leaf, k) => [leaf, k]))
  const tree = nameTree(plan.tree, numbers, queryName, site)
  const instance: Instance = {
    text: plan.args.text,
    over,
    tree,
    parts: withFilledBlocks(tree, parts, over),
    given,
  }
  testInstance(instance, firstIdentical(leaves, cutParts), site)
  return instance
}

/** The first part with the same format and arguments; a part that is cut to a range equals no other. */
function firstIdentical(leaves: readonly PlannedLeaf[], cutParts: ReadonlySet<number>): readonly number[] {
  const byFormat = new Map<Format, Map<string, number>>()
  return leaves.map(({ format, args }, k) => {
    if (cutParts.has(k)) return k
    const byArguments = byFormat.get(format) ?? new Map<string, number>()
    byFormat.set(format, byArguments)
    const key = [...args.values.values()].map(keyOf).join()
    if (!byArguments.has(key)) byArguments.set(key, k)
    return byArguments.get(key)!
  })
}

/** Unique numbered names for queries, which have no names in a kernel. */
function queryNames(): (name: string) => string {
  const numbers = new Map<string, number>()
  return (name) => {
    const plain = name.replace(/\W/g, '')
    const number = numbers.get(plain) ?? 0
    numbers.set(plain, number + 1)
    return `${plain}#${number}`
  }
}

/** Sizes to be measured: declared before parts have labels, named afterwards. */
class OpenSizes {
  readonly #names = new Map<string, string>()

  declare(name: string): string {
    const placeholder = `${name}#${this.#names.size}`
    this.#names.set(placeholder, name)
    return placeholder
  }

  /** A size used by a single part gets that part's label. */
  assignNames(
    leaves: readonly PlannedLeaf[],
    labels: readonly string[],
    rename: (name: string, label: string) => string,
  ): ReadonlyMap<string, string> {
    const out = new Map<string, string>()
    for (const [placeholder, name] of this.#names) {
      const users = labels.filter((_, k) => leaves[k]!.args.measured.some((m) => m.name === placeholder))
      if (users.length > 0) out.set(placeholder, rename(name, users.length === 1 ? users[0]! : ''))
    }
    return out
  }
}

function withSizes(args: Arguments, sizes: ReadonlyMap<string, string>): Arguments {
  const finalName = (name: string): string => sizes.get(name) ?? name
  return {
    ...args,
    values: new Map(
      [...args.values].map(([p, e]) => [p, e.kind === 'var' ? variable(finalName(e.name)) : e]),
    ),
    measured: args.measured.map((m) => ({ ...m, name: finalName(m.name) })),
  }
}

function leavesOf(p: Planned): PlannedLeaf[] {
  if (p.kind === 'leaf') return [p]
  return p.kind === 'index' ? p.children.flatMap(leavesOf) : p.cases.flatMap((c) => leavesOf(c.child))
}

/** Labels of the parts: empty for a single part, otherwise the path to the part, made unique. */
function labelsOf(leaves: readonly PlannedLeaf[]): string[] {
  if (leaves.length === 1) return ['']
  const labels = new Names()
  return leaves.map((leaf) => labels.fresh(leaf.label.join('_')))
}

function nameTree(
  plan: Planned,
  numbers: ReadonlyMap<PlannedLeaf, number>,
  queryName: (name: string) => string,
  site: SpanOption,
): PartTree {
  switch (plan.kind) {
    case 'leaf': {
      const part = numbers.get(plan)
      invariant(part !== undefined, 'a leaf without a number')
      return { kind: 'leaf', part }
    }
    case 'index': {
      const { expr, queries } = translateSelector(plan.index, queryName, site)
      return {
        kind: 'index',
        text: plan.text,
        queries,
        index: expr,
        total: plan.total,
        implied: plan.holds,
        children: plan.children.map((c) => nameTree(c, numbers, queryName, site)),
        ...spanOf(plan.span),
      }
    }
    case 'cases': {
      const queries: Query[] = []
      const namesByQuery = new Map<string, string>()
      const cases = plan.cases.map((c) => {
        const conditions = c.where.map((w) => {
          const translated = translateSelector(w, queryName, site, namesByQuery)
          queries.push(...translated.queries)
          return translated.expr
        })
        return {
          text: c.text,
          where: conditions.length === 0 ? null : all(conditions),
          child: nameTree(c.child, numbers, queryName, site),
        }
      })
      return { kind: 'cases', queries, cases, ...spanOf(plan.span) }
    }
  }
}

/** Translates a condition or index and its queries. @throws SptError `format/condition` */
function translateSelector(
  a: Selector,
  queryName: (name: string) => string,
  site: SpanOption,
  namesByQuery: Map<string, string> = new Map(),
): { readonly expr: Expr; readonly queries: readonly Query[] } {
  const { queries, scope } = translateQueries(a.queries, [a.expr], a.scope, queryName, namesByQuery)
  // A sort orders the elements of one part, so it cannot select parts.
  invariant(
    queries.every((q) => sourceOf(q, 'sort') === undefined),
    'a condition depends on a place in a sort',
  )
  const { format, variables } = a.scope
  const measuredParam = format.params.find((p) => p.measured && variables.get(p.name)?.kind === 'var')
  if (measuredParam && freeVars(a.expr).has(measuredParam.name))
    failWith('format/condition', `${format.name} selects by ${measuredParam.name}, which is measured`, {
      ...spanOf(a.expr.span, format.span, site.span),
      expected: 'a condition over coordinates, sizes, arguments and queries of stored coordinates',
      hint: `pass ${measuredParam.name}: parts are determined before widths are measured`,
    })
  const expr = translate(a.expr, scope)
  return { expr, queries }
}

function givenData(bound: readonly Arguments[], site: SpanOption): Instance['given'] {
  const out = new Map<string, { readonly name: string; readonly kind: 'list' | 'set' }>()
  for (const { given } of bound)
    for (const g of given.values()) {
      const previous = out.get(g.name)
      if (previous && previous.kind !== g.kind)
        fail({ ...listAndSetDiagnostic(g.name), ...spanOf(site.span) })
      out.set(g.name, g)
    }
  return [...out.values()]
}
