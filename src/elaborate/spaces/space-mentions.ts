/** Names and expressions in the parts of a space. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Resolve } from '../schedules/resolve.ts'
import type { NumberList, Option, Space, SpaceStep } from './space-types.ts'

export const expressionsIn = (v: NumberList): readonly Expr[] =>
  v.kind === 'list'
    ? v.entries.flatMap((e) => (e.power ? [e.value, e.power] : [e.value]))
    : [v.from, v.to, ...(v.by ? [v.by] : [])]

/** Returns the names that stand for values in a part of the syntax tree. */
export function namesIn(node: unknown): readonly string[] {
  if (typeof node !== 'object' || node === null) return []
  if ('kind' in node && node.kind === 'name' && 'name' in node && typeof node.name === 'string')
    return [node.name]
  return Object.entries(node).flatMap(([field, value]) =>
    field === 'span' || field === 'trivia' ? [] : namesIn(value),
  )
}

/** Reports numbers and formats that no step and no option mentions. */
export function refuseUnused(made: Space, s: Ast.Space, { report }: Resolve): void {
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
      report.error({
        code: 'check/unused-decision',
        message: `no step of space ${s.name.name} uses ${x.name.name}`,
        span: x.name.span,
        expected:
          x.kind === 'formats'
            ? `a step \`A as ${x.name.name}\``
            : `a step, format or schedule with the argument ${x.name.name}`,
        hint: `remove ${x.name.name}`,
      })
}
