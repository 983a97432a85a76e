/** Rejects features that WGSL lacks, before printing. */
import { failWith, type Span } from '../../../ast/diagnostics/diagnostic.ts'
import { walkExpr } from '../../../ir/expressions/expr-tree.ts'
import type { Kernel3, PlanStep, Stmt } from '../../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, walkStmts } from '../../../ir/statements/tree.ts'

/** Rejects plans with 64-bit floats, which WGSL lacks. @throws SptError `emit/no-f64` */
export function rejectF64(plan: Kernel3): void {
  const declaration =
    plan.buffers.find((b) => b.dtype === 'f64') ?? plan.params.find((p) => p.dtype === 'f64')
  const offender = declaration ?? plan.steps.flatMap(f64Nodes)[0]
  if (!offender) return
  failWith(
    'emit/no-f64',
    `${declaration ? `${declaration.name} is` : `${plan.name} computes in`} f64, which WGSL does not have`,
    {
      ...(offender.span && { span: offender.span }),
      expected: 'f32, f16, bf16, i32, u32, i8, u8 or bool',
      hint: declaration
        ? `declare ${declaration.name} f32, or run the kernel on cpu or cuda`
        : 'cast to f32 and accumulate in f32, or run the kernel on cpu or cuda',
    },
  )
}

/** WGSL allows 127 levels of braces in a function; compilers count statements and braces, two per level. */
const MAX_NESTING = 62

export function rejectDeepNesting(plan: Kernel3): void {
  const visit = (body: Body, depth: number, enclosing: Stmt | undefined): void => {
    for (const s of body) {
      const innermost = s.span ? s : enclosing
      if (depth > MAX_NESTING)
        failWith(
          'emit/too-deep',
          `${plan.name} has statements in more than ${MAX_NESTING} loops and conditions, which WGSL does not allow`,
          {
            ...(innermost?.span ? { span: innermost.span } : {}),
            expected: `at most ${MAX_NESTING} loops and conditions around each other`,
            hint: 'split loops less often, shorten the chain of `else if`, or run the kernel on cpu or cuda',
          },
        )
      for (const b of bodiesOf(s)) visit(b, depth + 1, innermost)
    }
  }
  for (const step of plan.steps) if (step.kind === 'launch') visit(step.body, 0, undefined)
}

function f64Nodes(step: PlanStep): { readonly span?: Span | undefined }[] {
  const nodes: { readonly span?: Span | undefined }[] = []
  if (step.kind === 'launch')
    walkStmts(step.body, (s) => {
      if (s.kind === 'alloc' && s.buffer.dtype === 'f64') nodes.push(s)
      for (const e of exprsOf(s)) walkExpr(e, (x) => void (x.dtype === 'f64' && nodes.push(x)))
    })
  return nodes
}
