/** The text of the kernel that selects a branch on the device: reductions over the lengths of lists, conditions, workgroup counts. */
import { capacitiesOf, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import { binary, type Expr, variable } from '../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Kernel3, Launch } from '../../ir/statements/loops.ts'

/** Largest number of workgroups in a dimension on every WebGPU device. */
const MOST_GROUPS = 65_535

/** The lists whose lengths determine a fill ratio, and the alternative with the builder. */
export interface Measured {
  readonly k: number
  readonly lists: RuntimeLists
  readonly elements: Expr
}

/** The number of the first branch whose conditions hold; otherwise the last. */
export const firstOf = (conditions: readonly (readonly string[])[]): string =>
  conditions
    .slice(0, -1)
    .reduceRight((rest, all, k) => `select(${all.join(' and ')}, ${k}, ${rest})`, `${conditions.length - 1}`)

/** A condition over fill ratios, which are texts by name, and sizes. WGSL has no f64. */
export const conditionText = (e: Expr, ratios: ReadonlyMap<string, string>): string =>
  `(${printExpr1(
    rewriteExpr(e, (x) => {
      const ratio = x.kind === 'var' ? ratios.get(x.name) : undefined
      return ratio === undefined ? undefined : variable(ratio, x.dtype)
    }),
  ).replaceAll('f64(', 'f32(')})`

/** Sums and maxima over the lengths of lists, in the text of the decision. */
export class CountedLists {
  readonly declarations: string[] = []
  readonly iterations: string[] = []
  readonly sizes: Expr[] = []
  readonly #axes = new Map<string, string>()

  constructor(
    readonly plans: readonly Kernel3[],
    readonly nameOf: Naming,
    readonly fresh: (name: string) => string,
  ) {}

  /** The text of a size. */
  #size(e: Expr): string {
    this.sizes.push(e)
    return printExpr1(ends(e))
  }

  /** The result of a reduction over the first `extent` entries of an array. */
  #reduced(
    k: number,
    counts: string,
    extent: Expr,
    reducer: string,
    value: (count: string) => string,
  ): string {
    const name = this.nameOf(k, counts)
    const axis = getOrAdd(this.#axes, name, () => {
      const fresh = this.fresh('list')
      const length = this.plans[k]!.buffers.find((b) => b.name === counts)!.shape[0]!
      this.declarations.push(
        `  axis ${fresh} = dense_fixed(${this.#size(length)})`,
        `  buffer ${name}: i32[${fresh}] in`,
      )
      return fresh
    })
    const result = this.fresh('lengths')
    this.declarations.push(`  buffer ${result}: i32[] local`)
    const where = this.#size(extent)
    this.iterations.push(
      `  iterate sum_${result} [${axis}] as R { if (${axis} < ${where}) { ${result}[] ${reducer}= ${value(`${name}[${axis}]`)} } }`,
    )
    return `${result}[]`
  }

  /** The fill ratio of a format. */
  ratio({ k, lists, elements }: Measured): string {
    const slots = lists.parts.map((p) => {
      const groups = this.#reduced(k, p.counts, p.lists, '+', (n) => `ceildiv(${n}, ${p.width})`)
      return `f32(${groups}) * ${p.width} * f32(${this.#size(p.slots)})`
    })
    return `((${slots.join(' + ')}) / f32(${this.#size(elements)}))`
  }

  /** The conditions under which lists are within their capacities. */
  fits(k: number, plan: Kernel3): readonly string[] {
    return capacitiesOf(plan).map((c) => {
      const length = plan.buffers.find((b) => b.name === c.counts)!.shape[0]!
      const most = this.#reduced(k, c.counts, length, 'max', (n) => n)
      return `ceildiv(${most}, ${c.width}) <= ${this.#size(c.capacity)}`
    })
  }
}

export type Naming = (alternative: number, counts: string) => string

/** The expression in operators of the language. Operands of truncated divisions are not negative. */
export const ends = (e: Expr): Expr =>
  rewriteExpr(e, (x) =>
    x.kind === 'binary' && (x.op === 'quo' || x.op === 'rem')
      ? binary(x.op === 'quo' ? 'div' : 'mod', x.a, x.b)
      : undefined,
  )

/** Declarations of the sizes in expressions, without other names. */
export const sizes = (of: readonly Expr[], others: { has(name: string): boolean } = new Set()): string =>
  [...new Set(of.flatMap((e) => [...freeVars(e)]))]
    .flatMap((n) => (others.has(n) ? [] : [`${n}: size`]))
    .join(', ')

/** Physical workgroup counts of a launch, folded as by `physicalGrid`. */
export function groupsOf({ grid }: Launch): readonly string[] {
  const [x, y, z] = grid.map((e) => `(${printExpr1(ends(e))})`) as [string, string, string]
  const isWithin = `${x} <= ${MOST_GROUPS} and ${y} <= ${MOST_GROUPS} and ${z} <= ${MOST_GROUPS}`
  const total = `(${x} * ${y} * ${z})`
  const rows = `ceildiv(${total}, ${MOST_GROUPS})`
  return [
    `select(${isWithin}, ${x}, select(${total} <= ${MOST_GROUPS}, ${total}, ceildiv(${total}, ${rows})))`,
    `select(${isWithin}, ${y}, ${rows})`,
    `select(${isWithin}, ${z}, 1)`,
  ].map((e) => `i32(${e})`)
}
