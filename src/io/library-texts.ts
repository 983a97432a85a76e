/** The libraries that the package knows how to call. */
import { packageJson, packageText } from './package.ts'

/** What the files of a kind of device hold; `null` where there are none. */
export function packagedLibraries(
  kind: string,
): { readonly libraries: unknown; readonly kernels: string } | null {
  const libraries = packageJson(`data/libraries/${kind}.json`)
  const kernels = packageText(`data/libraries/${kind}.spt`)
  return libraries === null || kernels === null ? null : { libraries, kernels }
}
