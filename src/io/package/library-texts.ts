/** Library bindings that come with the package. */
import { packageJson, packageText } from './package.ts'

/** The library bindings for a kind of device; `null` if the package has none. */
export function packagedLibraries(
  kind: string,
): { readonly libraries: unknown; readonly kernels: string } | null {
  const libraries = packageJson(`data/libraries/${kind}.json`)
  const kernels = packageText(`data/libraries/${kind}.spt`)
  return libraries === null || kernels === null ? null : { libraries, kernels }
}
