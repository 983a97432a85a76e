/** Stage III as text: the buffers that a plan allocates and the steps that it runs. */
import type { Plan } from '../statements/loops.ts'
import { printBody, printBuffer, printExpr } from './print-stage2.ts'

/** A plan as text, without a final line break. */
export function print3(plan: Plan): string {
  const params = plan.params.map((p) => `${p.name}: ${p.kind === 'size' ? 'size' : p.dtype}`).join(', ')
  const out = [`plan ${plan.name}(${params})`, ...plan.buffers.map((b) => `  ${printBuffer(b)}`)]
  for (const s of plan.steps) {
    if (s.kind === 'clear') out.push(`clear ${s.buffer}`)
    else {
      out.push(
        `launch ${s.name}  grid ${s.grid.map((e) => printExpr(e)).join(' × ')}  block ${s.block.join(' × ')}`,
      )
      out.push(
        ...printBody(s.body)
          .split('\n')
          .map((l) => `  ${l}`),
      )
    }
  }
  return out.join('\n')
}
