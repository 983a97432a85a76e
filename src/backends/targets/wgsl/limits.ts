/** Rejects features that WGSL lacks, before printing. */
import { fail, type Span } from '../../../ast/diagnostic.ts'
import { walkExpr } from '../../../ir/expr-tree.ts'
import type { Plan, PlanStep, Stmt } from '../../../ir/loops.ts'
import { type Body, bodiesOf, exprsOf, walkStmts } from '../../../ir/tree.ts'

/** WGSL has no 64-bit floats, in memory or in registers. */
export function refuseF64(plan: Plan): void {
  const named = plan.buffers.find((b) => b.dtype === 'f64') ?? plan.params.find((p) => p.dtype === 'f64')
  const where = named ?? plan.steps.flatMap(f64Inside)[0]
  if (!where) return
  fail({
    code: 'emit/no-f64',
    message: `${named ? `${named.name} is` : `${plan.name} computes in`} f64, which WGSL does not have`,
    ...(where.span ? { span: where.span } : {}),
    expected: 'f32, f16, bf16, i32, u32, i8, u8 or bool',
    hint: named
      ? 'declare it f32, or run the kernel on cpu or cuda'
      : 'cast to f32 and accumulate in f32, or run the kernel on cpu or cuda',
  })
}

/** WGSL allows 127 levels of braces in a function; compilers count statements and braces, two per level. */
const MOST_NESTED = 62

export function refuseDeep(plan: Plan): void {
  const visit = (body: Body, depth: number, around: Stmt | undefined): void => {
    for (const s of body) {
      const here = s.span ? s : around
      if (depth > MOST_NESTED)
        fail({
          code: 'emit/too-deep',
          message: `${plan.name} has statements in more than ${MOST_NESTED} loops and conditions, which WGSL does not allow`,
          ...(here?.span ? { span: here.span } : {}),
          expected: `at most ${MOST_NESTED} loops and conditions around each other`,
          hint: 'split loops less often, shorten the chain of `else if`, or run the kernel on cpu or cuda',
        })
      for (const b of bodiesOf(s)) visit(b, depth + 1, here)
    }
  }
  for (const step of plan.steps) if (step.kind === 'launch') visit(step.body, 0, undefined)
}

function f64Inside(step: PlanStep): { readonly span?: Span | undefined }[] {
  const found: { readonly span?: Span | undefined }[] = []
  if (step.kind === 'launch')
    walkStmts(step.body, (s) => {
      if (s.kind === 'alloc' && s.buffer.dtype === 'f64') found.push(s)
      for (const e of exprsOf(s)) walkExpr(e, (x) => void (x.dtype === 'f64' && found.push(x)))
    })
  return found
}
