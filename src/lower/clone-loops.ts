/** Copies of loops and their bodies. */
import { boundVarsOf, renameBound, renameBuffer, substituteStmts } from '../ir/bindings.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import type { For } from '../ir/loops.ts'
import { type Body, stmt, walkStmts } from '../ir/tree.ts'
import type { Names } from './fresh-names.ts'

/** The body at one value of the loop variable, with its own names for what it binds. */
export const bodyAt = (loop: For, value: Expr, names: Names): Body =>
  copyOf(substituteStmts(loop.body, new Map([[loop.var, value]])), names)

/** The same statements with their own names for what they bind. */
export function copyOf(statements: Body, names: Names): Body {
  let body = renameBound(statements, new Map([...boundVarsOf(statements)].map((v) => [v, names.fresh(v)])))
  const locals: string[] = []
  walkStmts(body, (s) => {
    if (s.kind === 'alloc') locals.push(s.buffer.name)
  })
  for (const name of locals) body = renameBuffer(body, name, names.fresh(name))
  return body
}

/** The loops under new names around what `make` gives for their variables and what `around` says. */
export function nestOf(
  loops: readonly For[],
  names: Names,
  around: ReadonlyMap<string, Expr>,
  make: (map: ReadonlyMap<string, Expr>) => Body,
): Body {
  const map = new Map(around)
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    const extent = substitute(l.extent, map)
    return { ...l, var: name, extent, guards: l.guards.map((g) => substitute(g, map)) }
  })
  return copies.reduceRight<Body>((body, l) => [stmt({ ...l, body })], make(map))
}
