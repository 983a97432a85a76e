/**
 * May a format store coordinates that the tensor does not hold, or leave out some that were visited? Only if visiting them changes nothing: with the
 * fill value in place of the tensor, every reduction must combine its identity, and an assignment to a tensor of
 * another format must not happen at all.
 */
import { fail } from '../../ast/diagnostic.ts'
import type { FormatInstance } from '../../formats/instantiate.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { constant, type Expr, freeVars, keyOf, rewriteExpr } from '../../ir/expr.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../ir/stage1.ts'

export interface Padding {
  readonly over: readonly StoredAxis[]
  readonly leaving: ReadonlySet<string>
  readonly changed: readonly Buffer1[]
  readonly instance: FormatInstance
}

/** Whether the format's axes hold coordinates beyond those of the tensor (blocks, dense levels). */
export function padsWithFill(p: Padding): boolean {
  const dense = new Set(p.over.filter((a) => a.kind === 'dense_fixed').map((a) => a.name))
  return p.instance.order.some((name, k) => {
    const axis = p.instance.axes.find((a) => a.name === name)!
    return (
      (axis.kind === 'dense_fixed' || axis.kind === 'dense_variable') &&
      [...freeVars(p.instance.map[k]!)].some((v) => p.over.some((a) => a.name === v) && !dense.has(v))
    )
  })
}

/**
 * Whether the format may leave out coordinates that were all visited: a dense tensor under sparse axes, or what
 * lies between the elements of a ragged row, of which a format is only told the elements.
 */
const leavesOut = (p: Padding): boolean =>
  p.over.some((a) => a.kind === 'dense_variable') ||
  (p.over.every((a) => a.kind === 'dense_fixed') && p.instance.axes.some((a) => a.kind !== 'dense_fixed'))

export function checkPadding(kernel: Kernel1, p: Padding, at: object): void {
  const out = leavesOut(p)
  if (!padsWithFill(p) && !out) return
  const kept = out ? p.changed.find((b) => b.role !== 'in') : undefined
  if (kept) refuseOutput(kernel, p, kept, at)
  const fills = new Map(
    p.changed.filter((b) => b.role === 'in').map((b) => [b.name, constant(b.fill, b.dtype)]),
  )
  const visit = (body: readonly Stmt1[], inside: boolean): void => {
    for (const s of body) {
      if (s.kind === 'iterate') visit(s.body, inside || s.iters.some((x) => p.leaving.has(x.axis)))
      else if (s.kind === 'if') {
        visit(s.then, inside)
        visit(s.else, inside)
      } else if (s.kind !== 'let' && inside) {
        s.targets.forEach((t, k) => {
          const inFormat = p.changed.some((b) => b.name === t.buffer)
          const value = absorb(inlineLets(s.values[k]!, body), fills)
          if (s.kind === 'reduce' ? !isIdentity(value, s.reducer.identity[k]!) : out || !inFormat)
            refuse(kernel, p, t.buffer, out, at)
        })
      }
    }
  }
  visit(kernel.body, false)
}

function inlineLets(e: Expr, body: readonly Stmt1[]): Expr {
  const lets = new Map<string, Expr>()
  for (const s of body)
    if (s.kind === 'let')
      lets.set(
        s.name,
        rewriteExpr(s.value, (x) => (x.kind === 'var' ? lets.get(x.name) : undefined)),
      )
  return lets.size === 0 ? e : rewriteExpr(e, (x) => (x.kind === 'var' ? lets.get(x.name) : undefined))
}

/** The value with the fill in place of the tensor: 0 · x is 0 (a skipped zero is structural), x + 0 is x. */
function absorb(e: Expr, fills: ReadonlyMap<string, Expr>): Expr {
  const zero = (x: Expr): boolean => x.kind === 'const' && x.value === 0
  return rewriteExpr(e, (x) => {
    if (x.kind === 'load') return fills.get(x.buffer)
    if (x.kind === 'cast') return x.x.kind === 'const' ? constant(x.x.value, x.dtype) : undefined
    if (x.kind === 'select') return keyOf(x.then) === keyOf(x.else) ? x.then : undefined
    if (x.kind !== 'binary') return undefined
    if (x.op === 'mul' && (zero(x.a) || zero(x.b))) return constant(0, x.dtype)
    if (x.op === 'div' && zero(x.a)) return constant(0, x.dtype)
    if (x.op === 'add' && zero(x.a)) return x.b
    if ((x.op === 'add' || x.op === 'sub') && zero(x.b)) return x.a
    return undefined
  })
}

const isIdentity = (value: Expr, identity: Expr): boolean =>
  value.kind === 'const' && identity.kind === 'const' && value.value === identity.value

function refuseOutput(kernel: Kernel1, p: Padding, b: Buffer1, at: object): never {
  fail({
    code: 'schedule/format-output',
    message: `${b.name} of ${kernel.name} is written at every coordinate of its dense axes, and ${p.instance.text} would leave out some`,
    ...at,
    expected: 'a format of dense axes for a dense tensor that is written',
    hint: `declare ${b.name} over sparse axes, or keep it as it is`,
  })
}

function refuse(kernel: Kernel1, p: Padding, target: string, out: boolean, at: object): never {
  const dense = p.instance.order.filter(
    (n) => p.instance.axes.find((a) => a.name === n)?.kind === 'dense_fixed',
  )
  const names = p.changed.map((b) => b.name).join(', ')
  if (out)
    fail({
      code: 'schedule/format-padding',
      message: `${p.instance.text} leaves out coordinates of ${names} that hold its fill value, and passing them over would change ${target} of ${kernel.name}`,
      ...at,
      expected: 'a reduction that combines its identity where the tensor has its fill value',
      hint: `keep ${names} as it is, or declare it over sparse axes`,
    })
  fail({
    code: 'schedule/format-padding',
    message: `${p.instance.text} stores coordinates that are absent from ${names}, and visiting them would change ${target} of ${kernel.name}`,
    ...at,
    expected: 'a reduction that combines its identity where the tensor has its fill value',
    hint: `the padding comes from the dense axes ${dense.join(', ')}: choose a format that stores only what is there (csr, ell, dcsr)`,
  })
}
