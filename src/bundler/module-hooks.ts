/** Hooks of `node --import sparsetile/register`, which run in a thread of Node. */

import type { LoadHook, ResolveHook } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import { render } from '../ast/diagnostics/render.ts'
import { inPackage } from '../ast/imports/resolve-path.ts'
import { locate } from '../io/package/package.ts'
import { planModule } from './plan-module.ts'
import { compilePlan, isPlanImport, type PlanRequest, planRequest } from './plan-request.ts'

/** A page runtime of this package, by URL because the program may not have installed the package. */
const runtimeOf = ({ formats }: PlanRequest): string =>
  new URL(formats ? './runtime-formats.js' : './runtime.js', import.meta.url).href

export const resolve: ResolveHook = (specifier, context, next) => {
  if (!isPlanImport(specifier)) return next(specifier, context)
  const [file = '', query] = specifier.split('?')
  const base = inPackage(file) ? pathToFileURL(locate(file)) : new URL(file, context.parentURL)
  return { url: `${base.href}?${query}`, format: 'module', shortCircuit: true }
}

export const load: LoadHook = async (url, context, next) => {
  if (!isPlanImport(url)) return next(url, context)
  const [file = '', query] = url.split('?')
  try {
    const request = planRequest(`${fileURLToPath(file)}?${query}`)
    const { plan } = await compilePlan(request)
    return { format: 'module', source: planModule(plan, request, runtimeOf(request)), shortCircuit: true }
  } catch (e) {
    if (e instanceof SptError) throw new SyntaxError(render(e.diagnostics, e.sources ?? new Map()))
    throw e
  }
}
