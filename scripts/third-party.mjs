// Copyright notices of the libraries that the bundles of the package contain.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Names of npm packages with modules in a bundle, from esbuild's metafile. */
export const bundledPackages = ({ outputs }) => {
  const inputs = Object.values(outputs).flatMap((o) => Object.keys(o.inputs))
  const names = inputs.map((path) => /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
  return [...new Set(names.filter((name) => name !== undefined))].toSorted()
}

/** Licences whose only condition is the notice. */
const PERMISSIVE = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause'])

/** Name, version and the text of the licence of each package. Throws for another licence, and if there is no text. */
export function notices(root, names) {
  const parts = names.map((name) => {
    const folder = join(root, 'node_modules', name)
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f))
    if (!PERMISSIVE.has(license) || file === undefined)
      throw new Error(
        `${name} is bundled: its licence (${license}, ${file}) is not one of ${[...PERMISSIVE]}`,
      )
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
  })
  return `The files in this folder contain code of these libraries.\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
