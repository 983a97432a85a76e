/** Instantiation of a format or composition with its arguments, over the axes of one kernel. */
import { fail, invariant } from '../../ast/diagnostic.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { Names } from '../../ir/bound-names.ts'
import { all, constant, type Expr, variable } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import { type AnyFormat, type Format, type Instance, ofOrder, type PartInstance } from '../../ir/format.ts'
import { passedAsBoth } from '../../ir/format-tables.ts'
import type { PartTree } from '../../ir/part-tree.ts'
import { type Query, sourceOf } from '../../ir/queries.ts'
import { keyOf } from '../../ir/structural-equality.ts'
import { withFilledBlocks } from './filled-blocks.ts'
import { type Arguments, type SpanOption, spanOf } from './format-arguments.ts'
import { formatInstance } from './instantiate-format.ts'
import { namesBeside } from './names-beside.ts'
import { cutToRanges } from './ranges.ts'
import { type Asking, type Planned, type PlannedLeaf, planParts } from './rules.ts'
import { translate, translateQueries } from './translate-names.ts'
import { tryInstance } from './trial.ts'

export type { FormatInstance } from '../../ir/format.ts'
export { instantiateFormat } from './instantiate-format.ts'

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
  at: SpanOption = {},
): Instance {
  const args = use.args.map((a) =>
    typeof a === 'string' ? variable(a) : constant(a, Number.isInteger(a) ? 'i32' : 'f64'),
  )
  const open = new OpenSizes()
  const plan = planParts(ofOrder(use.format, over.length), args, over, (name) => open.declare(name), at)
  const given = givenOf(plan.bound, at)
  const data = new Set(given.map((g) => g.name))
  const leaves = leavesOf(plan.tree)
  const labels = labelsOf(leaves)
  const sizes = open.named(leaves, labels, rename)
  const fresh = queryNames()
  const cut = new Set<number>()
  const parts = leaves.map((leaf, k): PartInstance => {
    const label = labels[k]!
    const own = withSizes(leaf.args, sizes)
    const names = {
      axis: (name: string) => rename(name, label),
      beside: namesBeside(leaf.format, label, data, rename),
      query: fresh,
    }
    const whole = formatInstance(leaf.format, own, over, names, at)
    const instance = cutToRanges(whole, over, leaf.ranges)
    if (instance !== whole) cut.add(k)
    return {
      label,
      instance: { ...instance, constants: new Map([...leaf.constants, ...instance.constants]) },
    }
  })
  const numbers = new Map(leaves.map((leaf, k) => [leaf, k]))
  const tree = nameTree(plan.tree, numbers, fresh, at)
  const instance: Instance = {
    text: plan.args.text,
    over,
    tree,
    parts: withFilledBlocks(tree, parts, over),
    given,
  }
  tryInstance(instance, firstAlike(leaves, cut), at)
  return instance
}

/** For each part the first one with the same format and arguments; a part that is cut to a range equals no other. */
function firstAlike(leaves: readonly PlannedLeaf[], cut: ReadonlySet<number>): readonly number[] {
  const first = new Map<Format, Map<string, number>>()
  return leaves.map(({ format, args }, k) => {
    if (cut.has(k)) return k
    const known = first.get(format) ?? new Map<string, number>()
    first.set(format, known)
    const key = [...args.values.values()].map(keyOf).join()
    if (!known.has(key)) known.set(key, k)
    return known.get(key)!
  })
}

/** Unique numbered names for queries, which have none in a kernel. */
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
    const stand = `${name}#${this.#names.size}`
    this.#names.set(stand, name)
    return stand
  }

  /** A size used by a single part gets that part's label. */
  named(
    leaves: readonly PlannedLeaf[],
    labels: readonly string[],
    rename: (name: string, label: string) => string,
  ): ReadonlyMap<string, string> {
    const out = new Map<string, string>()
    for (const [stand, name] of this.#names) {
      const users = labels.filter((_, k) => leaves[k]!.args.measured.some((m) => m.name === stand))
      if (users.length > 0) out.set(stand, rename(name, users.length === 1 ? users[0]! : ''))
    }
    return out
  }
}

function withSizes(args: Arguments, sizes: ReadonlyMap<string, string>): Arguments {
  const named = (name: string): string => sizes.get(name) ?? name
  return {
    ...args,
    values: new Map([...args.values].map(([p, e]) => [p, e.kind === 'var' ? variable(named(e.name)) : e])),
    measured: args.measured.map((m) => ({ ...m, name: named(m.name) })),
  }
}

function leavesOf(p: Planned): PlannedLeaf[] {
  if (p.kind === 'leaf') return [p]
  return p.kind === 'index' ? p.children.flatMap(leavesOf) : p.cases.flatMap((c) => leavesOf(c.child))
}

/** Empty for a single part; otherwise the path to the part, made unique. */
function labelsOf(leaves: readonly PlannedLeaf[]): string[] {
  if (leaves.length === 1) return ['']
  const labels = new Names()
  return leaves.map((leaf) => labels.fresh(leaf.label.join('_')))
}

function nameTree(
  p: Planned,
  numbers: ReadonlyMap<PlannedLeaf, number>,
  fresh: (name: string) => string,
  at: SpanOption,
): PartTree {
  switch (p.kind) {
    case 'leaf': {
      const part = numbers.get(p)
      invariant(part !== undefined, 'a leaf without a number')
      return { kind: 'leaf', part }
    }
    case 'index': {
      const { expr, queries } = ask(p.index, fresh, at)
      return {
        kind: 'index',
        text: p.text,
        queries,
        index: expr,
        total: p.total,
        holds: p.holds,
        children: p.children.map((c) => nameTree(c, numbers, fresh, at)),
        ...spanOf(p.span),
      }
    }
    case 'cases': {
      const queries: Query[] = []
      const namesByQuery = new Map<string, string>()
      const cases = p.cases.map((c) => {
        const conditions = c.where.map((w) => {
          const answer = ask(w, fresh, at, namesByQuery)
          queries.push(...answer.queries)
          return answer.expr
        })
        return {
          text: c.text,
          where: conditions.length === 0 ? null : all(conditions),
          child: nameTree(c.child, numbers, fresh, at),
        }
      })
      return { kind: 'cases', queries, cases, ...spanOf(p.span) }
    }
  }
}

/** Translates a condition or index and its queries. @throws SptError `format/condition` */
function ask(
  a: Asking,
  fresh: (name: string) => string,
  at: SpanOption,
  namesByQuery: Map<string, string> = new Map(),
): { readonly expr: Expr; readonly queries: readonly Query[] } {
  const { queries, scope } = translateQueries(a.queries, [a.expr], a.scope, fresh, namesByQuery)
  // A sort orders the elements of one part, so it cannot select parts.
  invariant(
    queries.every((q) => sourceOf(q, 'sort') === undefined),
    'a condition asks for a place in a sort',
  )
  const { format, variables } = a.scope
  const open = format.params.find((p) => p.measured && variables.get(p.name)?.kind === 'var')
  if (open && freeVars(a.expr).has(open.name))
    fail({
      code: 'format/condition',
      message: `${format.name} selects by ${open.name}, which is measured`,
      ...spanOf(a.expr.span, format.span, at.span),
      expected: 'a condition over coordinates, sizes, arguments and queries of stored coordinates',
      hint: `pass ${open.name}: parts are determined before widths are measured`,
    })
  const expr = translate(a.expr, scope)
  return { expr, queries }
}

function givenOf(bound: readonly Arguments[], at: SpanOption): Instance['given'] {
  const out = new Map<string, { readonly name: string; readonly kind: 'list' | 'set' }>()
  for (const { given } of bound)
    for (const g of given.values()) {
      const known = out.get(g.name)
      if (known && known.kind !== g.kind) fail({ ...passedAsBoth(g.name), ...spanOf(at.span) })
      out.set(g.name, g)
    }
  return [...out.values()]
}
