/** Statements under a format of several parts: each iteration over the replaced axes runs once for each part. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import type { Iteration, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { type PartRewrite, rewriteStmt } from './format-rewrite.ts'
import { distribute, enters } from './iteration-fission.ts'
import type { Split } from './tensor-split.ts'

/** Claims and returns an unused name; `label` is the label of the part, a suffix of the name. */
export type Unused = (name: string, label?: string) => string

/** Returns the statement over one part (null: of no part). @throws SptError if its iterations do not fit the part */
export function inPart(s: Stmt1, split: Split, part: number | null): Stmt1 {
  const c: PartRewrite = { split, part, problems: [] }
  const out = rewriteStmt(s, c)
  const [problem] = c.problems
  return problem ? fail(problem) : out
}

/** Returns the iteration over each part, under a name of its own; `own` changes it for a part before. */
export const inParts = (
  it: Iteration,
  split: Split,
  unused: Unused,
  own: (it: Iteration, part: number) => Stmt1 = (x) => x,
): Stmt1[] =>
  split.instance.parts.map(({ label }, part) => {
    const name = label === '' ? it.name : unused(it.name, label)
    return inPart(own({ ...it, name }, part), split, part)
  })

/** Distributes a nest, and returns its pieces over each part. @throws SptError `schedule/format-distribute` */
export function inPieces(
  nest: Iteration,
  split: Split,
  unused: Unused,
  own?: (it: Iteration, part: number) => Stmt1,
): Stmt1[] {
  const { leaving, instance } = split
  const seen = new Set<string>()
  return distribute(nest, leaving, instance.text).flatMap((piece) => {
    const name = seen.has(piece.name) ? unused(piece.name) : piece.name
    seen.add(name)
    const named = { ...piece, name }
    return enters(named, leaving) ? inParts(named, split, unused, own) : [inPart(named, split, null)]
  })
}
