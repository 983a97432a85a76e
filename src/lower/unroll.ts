/**
 * Invariant reached: no loop asks to be unrolled or vectorised. A constant loop becomes copies of its body; a
 * factor makes a main loop of that many copies and a loop for what is left over.
 */
import { invariant } from '../ast/diagnostic.ts'
import { add, div, type Expr, int, mod, mul, variable } from '../ir/expr.ts'
import type { For } from '../ir/loops.ts'
import {
  type Body,
  boundVarsOf,
  renameBound,
  renameBuffer,
  rewriteStmts,
  stmt,
  substituteStmts,
  walkStmts,
} from '../ir/tree.ts'
import type { Names } from './names.ts'

export function unrollLoops(body: Body, names: Names): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for' || (s.mode.kind !== 'unroll' && s.mode.kind !== 'vectorize')) return undefined
      const factor = s.mode.kind === 'unroll' ? s.mode.factor : null
      return factor === null ? whole(s, names) : byFactor(s, factor, names)
    },
  })
}

function whole(loop: For, names: Names): Body {
  invariant(
    loop.extent.kind === 'const' && loop.guards.length === 0,
    'only a constant loop without guards unrolls whole',
  )
  return Array.from({ length: loop.extent.value }, (_, k) => copy(loop, int(k), names)).flat()
}

function byFactor(loop: For, factor: number, names: Names): Body {
  const count = int(factor)
  const main = names.fresh(loop.var)
  const rest = names.fresh(loop.var)
  const serial = { kind: 'serial' } as const
  const copies = Array.from({ length: factor }, (_, k) =>
    copy(loop, add(mul(variable(main), count), int(k)), names),
  ).flat()
  const done = mul(div(loop.extent, count), count)
  return [
    stmt<For>({
      ...loop,
      var: main,
      extent: div(loop.extent, count),
      guards: [],
      mode: serial,
      body: copies,
    }),
    stmt<For>({
      ...loop,
      var: rest,
      extent: mod(loop.extent, count),
      guards: [],
      mode: serial,
      body: copy(loop, add(done, variable(rest)), names),
    }),
  ]
}

/** The body at one value of the loop variable, with its own names for what it binds. */
function copy(loop: For, value: Expr, names: Names): Body {
  let body = substituteStmts(loop.body, new Map([[loop.var, value]]))
  body = renameBound(body, new Map([...boundVarsOf(body)].map((v) => [v, names.fresh(v)])))
  const locals: string[] = []
  walkStmts(body, (s) => {
    if (s.kind === 'alloc') locals.push(s.buffer.name)
  })
  for (const name of locals) body = renameBuffer(body, name, names.fresh(name))
  return body
}
