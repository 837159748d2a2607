"""DxDispatch models: the reader, the rules of its parser, and the runner."""
