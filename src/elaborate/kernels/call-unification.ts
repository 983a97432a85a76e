/** Unification of a callee's axes and sizes with the caller's, through the buffers that a call passes. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { levelProperties, operandsOf } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { namesIn } from '../../ast/nodes/walk.ts'
import { printExpr } from '../../ast/print/print.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { report } from '../diagnostics.ts'
import { integerValue } from '../expressions/index-arithmetic.ts'
import { filled } from '../instructions/instances.ts'

export type Axes = ReadonlyMap<string, Ast.AxisDecl>

export const axesOf = (members: readonly Ast.Member[]): Axes =>
  new Map(members.flatMap((m) => (m.kind === 'axis' ? [[m.name.name, m]] : [])))

/** A buffer of the caller that is passed for a buffer of the callee. */
interface Argument {
  readonly own: Ast.BufferDecl
  readonly other: Ast.BufferDecl
  readonly at: Span
}

/** An extent of the callee that an argument sets to an extent of the caller. */
interface Equation {
  readonly own: Ast.Expr
  readonly other: Ast.Expr
  readonly by: Argument
}

export class Unification {
  /** The caller's axis of an axis of the callee. */
  readonly axes = new Map<string, string>()
  readonly #axes: Axes
  /** Extents that must be equal after the sizes are known. */
  readonly #equations: Equation[] = []
  /** The arguments from which the sizes of the callee follow. */
  readonly #sources = new Map<string, Argument>()

  /** @param values the caller's expressions for parameters of the callee; sizes are added */
  constructor(
    private readonly callee: Ast.Kernel,
    private readonly callerAxes: Axes,
    readonly values: Map<string, Ast.Expr>,
  ) {
    this.#axes = axesOf(callee.members)
  }

  /** Passes a buffer of the caller for a buffer of the callee. Reports the first difference, and returns false. */
  pass(own: Ast.BufferDecl, other: Ast.BufferDecl, at: Span): boolean {
    const by = { own, other, at }
    const difference =
      own.axes.length !== other.axes.length
        ? `${other.name.name} has ${quantity(other.axes.length, 'dimension')}, and ${own.name.name} has ${own.axes.length}`
        : own.type.name !== other.type.name
          ? `${other.name.name} is ${other.type.name}, and ${own.name.name} is ${own.type.name}`
          : own.axes.map((x, k) => this.#unify(x.name, other.axes[k]!.name, by)).find((d) => d !== null)
    if (!difference) return true
    report('check/call', at, {
      message: `${other.name.name} cannot be passed for ${own.name.name} of kernel ${this.callee.name.name}: ${difference}`,
      labels: [
        { span: own.span, text: `${own.name.name} is declared here` },
        { span: other.span, text: `${other.name.name} is declared here` },
      ],
      expected: `a buffer like ${own.type.name}[${own.axes.map((x) => this.#describe(x.name)).join(', ')}]`,
    })
    return false
  }

  #describe(axis: string): string {
    const decl = this.#axes.get(axis)
    return decl ? `${axis}: ${decl.def.kind}` : axis
  }

  /** Makes an axis of the callee an axis of the caller. Returns the difference of unequal axes. */
  #unify(own: string, other: string, by: Argument): string | null {
    const known = this.axes.get(own)
    if (known === other) return null
    const [a, b] = [this.#axes.get(own), this.callerAxes.get(other)]
    // Missing axes are reported where buffers are declared.
    if (!a || !b) return null
    const isRoot = ({ def }: Ast.AxisDecl): boolean =>
      levelProperties(def.kind)?.stores === 'all' && 'parent' in def && def.parent === null
    if (known !== undefined && !(isRoot(a) && isRoot(b)))
      return `axis ${own} is ${known} through another argument, and ${other} here`
    if (known === undefined) this.axes.set(own, other)
    return this.#alike(a, b, by)
  }

  #alike(a: Ast.AxisDecl, b: Ast.AxisDecl, by: Argument): string | null {
    const both = `the axes ${b.name.name} and ${a.name.name}`
    if (a.def.kind !== b.def.kind)
      return `axis ${b.name.name} is ${b.def.kind}, and axis ${a.name.name} is ${a.def.kind}`
    for (const flag of ['ordered', 'unique'] as const)
      if (flagOf(a, flag) !== flagOf(b, flag)) return `only one of ${both} has ${flag} coordinates`
    const others = operandsOf(b.def)
    for (const [k, { kind, value }] of operandsOf(a.def).entries()) {
      const other = others[k]!
      if (kind === 'size') this.#equate(value, other.value as Ast.Expr, by)
      else if (kind !== 'buffer') {
        const [owns, theirs] = [listOf(value), listOf(other.value)]
        if (owns.length !== theirs.length) return `only one of ${both} has a parent`
        for (const [n, id] of owns.entries()) {
          const difference = this.#unify(id.name, theirs[n]!.name, by)
          if (difference) return difference
        }
      }
    }
    return null
  }

  /** An extent of the callee is an extent of the caller: a size that is unknown becomes the caller's expression. */
  #equate(own: Ast.Expr, other: Ast.Expr, by: Argument): void {
    if (own.kind === 'name' && !this.values.has(own.name)) {
      this.values.set(own.name, other)
      this.#sources.set(own.name, by)
    } else this.#equations.push({ own, other, by })
  }

  /** Checks that the parameters are known and that extents agree. Reports errors at `span` and at the arguments. */
  settle(span: Span): boolean {
    const { name } = this.callee.name
    const open = this.callee.params.filter((p) => !this.values.has(p.name.name))
    for (const p of open)
      report('check/call', span, {
        message: `${p.name.name} of kernel ${name} does not follow from the arguments`,
        labels: [{ span: p.span, text: 'declared here' }],
        hint: `write \`${p.name.name} = …\` among the arguments of a \`call\``,
      })
    if (open.length > 0) return false
    const different = this.#equations.filter(
      ({ own, other }) => text(filled(own, this.values)) !== text(other),
    )
    for (const { own, other, by } of different) {
      const size = printExpr(own)
      const value = text(filled(own, this.values))
      const from = namesIn(own).flatMap((x) => this.#sources.get(x.name) ?? [])
      report('check/call', by.at, {
        message: `${by.other.name.name} has extent ${text(other)}, and ${by.own.name.name} of kernel ${name} has extent ${size}${size === value ? '' : `, which is ${value}`}`,
        labels: [
          { span: own.span, text: `${size} is an extent here` },
          ...from.map((x) => ({ span: x.at, text: `${size} follows from ${x.other.name.name}` })),
        ],
        hint: 'pass buffers with equal extents',
      })
    }
    return different.length === 0
  }
}

const flagOf = ({ def }: Ast.AxisDecl, flag: 'ordered' | 'unique'): boolean =>
  !(flag in def) || def[flag as never]
const listOf = (names: unknown): readonly Ast.Ident[] =>
  names === null ? [] : ([names].flat() as Ast.Ident[])

/** The text of an extent, in which arithmetic of numbers is evaluated. */
function text(e: Ast.Expr): string {
  const value = integerValue(e)
  return value === null ? printExpr(e) : String(value)
}
