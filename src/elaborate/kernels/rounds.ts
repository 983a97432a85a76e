/**
 * Rounds (`iterate step [t] as T while (cond) { … }`): a sequential loop around loop nests. Elaboration replaces it by its
 * members between two edges. The number of the round and the condition become integer buffers without dimensions, which
 * iterations of their own update; so later stages only repeat the iterations between the edges.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { assign, elementOf, integer, integerBuffer, nest } from '../../ast/nodes/syntax-builders.ts'
import { mapSyntax, namesIn, walkSyntax } from '../../ast/nodes/walk.ts'
import { report } from '../diagnostics.ts'

/** The members of rounds before, between and after the edges. */
export interface RoundsParts {
  readonly before: readonly Ast.Member[]
  readonly edge: Omit<Ast.RoundsEdge, 'edge' | 'own'>
  readonly inside: readonly Ast.Member[]
  /** Run at the end of each round. */
  readonly last: readonly Ast.Member[]
}

/** @param unused - Returns a name of the kernel that is not in use, the given one if possible */
export function partsOfRounds(r: Ast.Rounds, unused: (name: string) => string): RoundsParts {
  const { span } = r.name
  const id = (name: string): Ast.Ident => ({ name: unused(`${r.name.name}_${name}`), span })
  const t = r.iter?.name.name
  const isCounted = t !== undefined && namesIn([r.members, r.while]).some((n) => n.name === t)
  const counter = isCounted ? id(t) : null
  if (counter) checkIterators(r, t!)
  const counted = <T>(part: T): T =>
    counter
      ? mapSyntax(part, (node) => (node.kind === 'name' && node.name === t ? elementOf(counter) : undefined))
      : part
  const flag = r.while && id('while')
  for (const m of r.members)
    if (m.kind === 'buffer' && m.role.name !== 'local')
      report('check/rounds', m.role.span, {
        message: `${m.name.name} is declared in rounds, and is ${m.role.name === 'in' ? 'an input' : 'an output'} of the kernel`,
        expected: 'buffers that are `local`',
        hint: 'declare inputs and outputs outside of the rounds',
      })
  if (r.while) checkCondition(r.while)
  const test = (): Ast.Iterate[] => {
    if (!r.while || !flag) return []
    const args = [counted(r.while), integer(1, span), integer(0, span)]
    const value: Ast.Call = { kind: 'call', fn: { name: 'select', span }, args, span: r.while.span }
    return [nest(id('test'), [assign(elementOf(flag), value)])]
  }
  const declared = [counter, flag].flatMap((name) => (name ? [integerBuffer(name)] : []))
  const start = counter ? [nest(id('start'), [assign(elementOf(counter), integer(0, span))])] : []
  const next: Ast.Expr[] = counter
    ? [{ kind: 'binary', op: 'add', a: elementOf(counter), b: integer(1, span), span }]
    : []
  return {
    before: [...declared, ...start, ...test()],
    edge: { kind: 'rounds_edge', name: r.name, axis: r.iter?.axis ?? null, flag, counter, span },
    inside: inIterations(counted(r.members), () => id('update')),
    last: [...next.map((value) => nest(id('next'), [assign(elementOf(counter!), value)])), ...test()],
  }
}

/** Members with an iteration around each sequence of statements. */
function inIterations(list: Ast.Rounds['members'], name: () => Ast.Ident): readonly Ast.Member[] {
  const out: Ast.Member[] = []
  let open: Ast.Stmt[] = []
  const close = (): void => {
    if (open.length > 0) out.push({ ...nest(name(), open), span: open[0]!.span })
    open = []
  }
  for (const m of list)
    if (m.kind === 'assign' || m.kind === 'reduce' || m.kind === 'let' || m.kind === 'if') open.push(m)
    else {
      close()
      out.push(m)
    }
  close()
  return out
}

function checkIterators({ members, iter }: Ast.Rounds, t: string): void {
  walkSyntax(members, (node, key) => {
    if (key === 'iters' && (node as Ast.Iter).name.name === t)
      report('check/duplicate', (node as Ast.Iter).span, {
        message: `the iterator ${t} has the name of something in sight`,
        labels: [{ span: iter!.span, text: `${t} counts the rounds` }],
        hint: 'name the iterator: `other in axis`',
      })
  })
}

function checkCondition(condition: Ast.Expr): void {
  walkSyntax(condition, (node) => {
    const access = node as Ast.Access
    if (access.kind === 'access' && access.index.length > 0)
      report('check/rounds', access.span, {
        message: `the condition of rounds reads an element of ${access.buffer.name}, which has dimensions`,
        expected: 'buffers without dimensions, such as `residual[]`',
        hint: `combine ${access.buffer.name} into a buffer without dimensions in the rounds`,
      })
  })
}

/** Reports rounds in rounds. */
export const rejectNested = (name: Ast.Ident, around: Ast.Ident): null =>
  report('check/rounds', name.span, {
    message: `rounds ${name.name} are in rounds ${around.name}`,
    labels: [{ span: around.span, text: 'the outer rounds' }],
    hint: 'combine both axes into one, and compute the coordinates with `/` and `%`',
  })
