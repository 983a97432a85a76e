/** A plan as the text of a JavaScript module, without `eval`: functions of the CPU are part of the module. */
import { isFamily } from '../plan/family-codec.ts'
import type { Plan, PlanBinding, PlanFamily } from '../plan/schema.ts'
import type { PlanRequest } from './plan-request.ts'

/**
 * Exports `plan`, `build(device)`, and both as the default. `runtime`: the specifier or URL of the runtime.
 * ```ts
 * import product from './product.spt?plan&schedule=gpu(8,32)'
 * const fn = await product.build(device)
 * ```
 */
export function planModule(
  plan: Plan | PlanFamily,
  { formats }: Pick<PlanRequest, 'formats'>,
  runtime = formats ? 'sparsetile/runtime/formats' : 'sparsetile/runtime',
): string {
  const parts = isFamily(plan)
    ? plan.plans.map((p, k) => planParts(p, formats, `plan${k}_`))
    : [planParts(plan, formats, '')]
  const functions = parts.flatMap((p) => p.functions)
  const plans = parts.map((p) => p.data)
  const data = isFamily(plan) ? { ...plan, choose: withBinding(plan.choose, formats), plans } : plans[0]!
  return [
    `import { instantiate } from ${JSON.stringify(runtime)}`,
    `export const plan = ${JSON.stringify(data)}`,
    ...(functions.length > 0 ? [`const functions = { ${functions.join(',\n')} }`] : []),
    `export const build = (device) => instantiate(plan, ${functions.length > 0 ? '{ functions }' : '{ device }'})`,
    'export default { plan, build }',
    '',
  ].join('\n')
}

/** Ready arrays need no description of the formats. */
function withBinding<T extends { readonly binding: PlanBinding }>(described: T, formats: boolean) {
  const { binding, ...ready } = described
  return formats ? described : ready
}

/** The data of a plan, and for the CPU its functions as properties of an object, whose names begin with `prefix`. */
function planParts(plan: Plan, formats: boolean, prefix: string) {
  const data = withBinding(plan, formats)
  if (plan.device !== 'cpu') return { data, functions: [] }
  const functions = plan.modules.map(({ text }, k) => {
    const names = plan.steps.flatMap((s) => ('launch' in s && s.module === k ? [s.launch] : []))
    const entries = [...new Set(names)].map((name) => `${prefix}${name}: ${name}`)
    return `...(() => {\n${text.replace(/^export /gm, '')}\nreturn { ${entries.join(', ')} }\n})()`
  })
  const steps = plan.steps.map((s) => ('launch' in s ? { ...s, launch: prefix + s.launch } : s))
  return { data: { ...data, steps, modules: plan.modules.map((m) => ({ ...m, text: '' })) }, functions }
}
