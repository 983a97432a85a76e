/** Copies of loop bodies. */
import type { Expr } from '../ir/expr.ts'
import type { For } from '../ir/loops.ts'
import { type Body, boundVarsOf, renameBound, renameBuffer, substituteStmts, walkStmts } from '../ir/tree.ts'
import type { Names } from './names.ts'

/** The body at one value of the loop variable, with its own names for what it binds. */
export function bodyAt(loop: For, value: Expr, names: Names): Body {
  let body = substituteStmts(loop.body, new Map([[loop.var, value]]))
  body = renameBound(body, new Map([...boundVarsOf(body)].map((v) => [v, names.fresh(v)])))
  const locals: string[] = []
  walkStmts(body, (s) => {
    if (s.kind === 'alloc') locals.push(s.buffer.name)
  })
  for (const name of locals) body = renameBuffer(body, name, names.fresh(name))
  return body
}
