/** Scripts that run in threads of their own. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../io/package/package.ts'

/**
 * @param path - Next to this file, or in the package if this file was bundled
 * @returns `null` if sources run untranspiled, because threads cannot load them
 */
export function threadScript(path: string): string | null {
  if (import.meta.url.endsWith('.ts')) return null
  const folder = packageFolder()
  const places = [
    new URL(path, import.meta.url),
    ...(folder ? [new URL(`dist/src/search/${path}`, folder)] : []),
  ]
  return places.map((p) => fileURLToPath(p)).find((p) => existsSync(p)) ?? null
}
