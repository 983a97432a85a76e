/** A plan as the text of a JavaScript module, without `eval`: functions of the CPU are part of the module. */
import type { Plan } from '../plan/schema.ts'
import type { PlanRequest } from './plan-request.ts'

/**
 * Exports `plan`, `build(device)`, and both as the default. `runtime`: the specifier or URL of the runtime.
 * ```ts
 * import product from './product.spt?plan&schedule=gpu(8,32)'
 * const fn = await product.build(device)
 * ```
 */
export function planModule(
  plan: Plan,
  { formats }: Pick<PlanRequest, 'formats'>,
  runtime = formats ? 'sparsetile/runtime/formats' : 'sparsetile/runtime',
): string {
  const isCpu = plan.device === 'cpu'
  const { binding: _, ...ready } = plan
  const data = {
    ...(formats ? plan : ready),
    ...(isCpu && { modules: plan.modules.map((m) => ({ ...m, text: '' })) }),
  }
  const functions = plan.modules.map(({ text }, k) => {
    const names = plan.steps.flatMap((s) => ('launch' in s && s.module === k ? [s.launch] : []))
    return `...(() => {\n${text.replace(/^export /gm, '')}\nreturn { ${[...new Set(names)].join(', ')} }\n})()`
  })
  return [
    `import { instantiate } from ${JSON.stringify(runtime)}`,
    `export const plan = ${JSON.stringify(data)}`,
    ...(isCpu ? [`const functions = { ${functions.join(',\n')} }`] : []),
    `export const build = (device) => instantiate(plan, ${isCpu ? '{ functions }' : '{ device }'})`,
    'export default { plan, build }',
    '',
  ].join('\n')
}
