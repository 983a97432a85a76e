/** Elaboration of a space's numbers (decisions with numeric values), and of conditions on these numbers. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { namesIn } from '../../ast/nodes/walk.ts'
import { printExpr } from '../../ast/print/print.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { ChoiceNames } from '../choices/choice-names.ts'
import { orReport, report } from '../diagnostics.ts'
import { condition } from '../expressions/expressions.ts'
import { argumentOver } from '../schedules/schedule-params.ts'
import type { NumberDecision, NumberList, Option, Space, SpaceCondition, SpaceStep } from './space-types.ts'
import { numbersOf } from './space-values.ts'

export class SpaceNumbers {
  /** The conditions of the space, in the order of their elaboration. */
  readonly conditions: SpaceCondition[] = []

  constructor(
    private readonly declared: readonly Ast.NumberDecision[],
    private readonly names: ChoiceNames,
  ) {}

  /** The decision of a number. Its condition becomes a condition of the space. */
  elaborated(n: Ast.NumberDecision): NumberDecision | null {
    const name = n.name.name
    const values = this.#values(n.values)
    if (n.where) this.condition(n.where)
    if (!values) return null
    const all = this.declared.map((m) => m.name.name)
    const mentioned = all.filter((m) => expressionsIn(values).some((e) => freeVars(e).has(m)))
    const late = mentioned.find((m) => all.indexOf(m) >= all.indexOf(name))
    if (late !== undefined)
      report('check/decision-order', n.span, {
        message: `the values of ${name} depend on ${late === name ? 'itself' : `${late}, which is decided later`}`,
        hint: late === name ? 'write a condition: `only where (…)`' : `move ${late} before ${name}`,
      })
    const isFixed = values.kind === 'list' && values.entries.length === 1
    const made = { name, values, isFixed, numbers: new Set(mentioned), span: n.span }
    if (orReport(() => numbersOf(made, () => undefined))?.length === 0)
      report('check/empty-space', n.span, {
        message: `${name} has no values`,
        hint: `add values, or remove ${name}`,
      })
    return made
  }

  #values(v: Ast.NumberList): NumberList | null {
    const integer = (e: Ast.Expr): Expr | null => this.integer(e)
    if (v.kind === 'range') {
      const [from, to, by] = [integer(v.from), integer(v.to), v.by && integer(v.by)]
      return from && to && (by || !v.by) ? { kind: 'range', from, to, by } : null
    }
    const entries = v.widths.map((w) => {
      const [value, power] = [integer(w.value), w.power && integer(w.power)]
      return value && (power || !w.power) ? { value, power, doubling: w.doubling } : null
    })
    const whole = entries.filter((e) => e !== null)
    return whole.length === entries.length ? { kind: 'list', entries: whole } : null
  }

  integer(e: Ast.Expr): Expr | null {
    return argumentOver(this.names, e, 'integer')
  }

  /**
   * The condition with the numbers that it mentions; an empty list if there is no condition, or after a reported error.
   */
  conditionsOf(e: Ast.Expr | null): readonly SpaceCondition[] {
    if (!e) return []
    const expr = condition(e, this.names)
    if (!expr) return []
    // Folding can remove a number from the expression, as in `p < p`.
    return [{ expr, text: printExpr(e), numbers: [...this.mentionedIn(e)], span: e.span }]
  }

  condition(e: Ast.Expr): void {
    this.conditions.push(...this.conditionsOf(e))
  }

  mentionedIn(node: unknown): ReadonlySet<string> {
    const names = new Set(this.declared.map((n) => n.name.name))
    return new Set(namesIn(node).flatMap(({ name }) => (names.has(name) ? [name] : [])))
  }
}

// Names and expressions in the parts of a space.

const expressionsIn = (v: NumberList): readonly Expr[] =>
  v.kind === 'list'
    ? v.entries.flatMap((e) => (e.power ? [e.value, e.power] : [e.value]))
    : [v.from, v.to, ...(v.by ? [v.by] : [])]

export function refuseUnused(made: Space, s: Ast.Space): void {
  const used = new Set<string>()
  const add = (o: Option): void => {
    for (const n of o.numbers) used.add(n)
  }
  const visit = (steps: readonly SpaceStep[]): void => {
    for (const x of steps) {
      if (x.kind !== 'options') for (const n of x.numbers) used.add(n)
      if (x.kind === 'format') {
        used.add(x.format)
        made.formats.get(x.format)?.options.forEach(add)
      }
      if (x.kind === 'options')
        for (const o of x.options) {
          add(o)
          if (Array.isArray(o.body)) visit(o.body)
        }
    }
  }
  visit(made.body)
  for (const n of [...made.numbers].reverse()) {
    // A fixed number is only a name, which conditions may use.
    if (n.isFixed) used.add(n.name)
    if (used.has(n.name)) for (const m of n.numbers) used.add(m)
  }
  for (const x of s.items)
    if ((x.kind === 'numbers' || x.kind === 'formats') && !used.has(x.name.name))
      report('check/unused-decision', x.name.span, {
        message: `no step of space ${s.name.name} uses ${x.name.name}`,
        expected:
          x.kind === 'formats'
            ? `a step \`A as ${x.name.name}\``
            : `a step, format or schedule with the argument ${x.name.name}`,
        hint: `remove ${x.name.name}`,
      })
}
