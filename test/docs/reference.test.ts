/** The pages of docs/reference: their blocks run. */
import { executes } from './site.ts'

executes('docs/reference')
