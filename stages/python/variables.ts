// Variables of the host that say where things are, never what they are: passed to stages, not in any key.

/** How this machine reaches package indexes: the ordinary settings of pip, uv and TLS. */
export const NETWORK = [
  ...[
    'PIP_INDEX_URL',
    'PIP_EXTRA_INDEX_URL',
    'PIP_CERT',
    'PIP_CONFIG_FILE',
    'PIP_DEFAULT_TIMEOUT',
    'PIP_FIND_LINKS',
  ],
  ...[
    'PIP_PROXY',
    'PIP_TRUSTED_HOST',
    'UV_DEFAULT_INDEX',
    'UV_INDEX',
    'UV_INDEX_URL',
    'UV_PYTHON_INSTALL_MIRROR',
  ],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
  ...[
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'NODE_EXTRA_CA_CERTS',
    'GIT_SSL_CAINFO',
  ],
]

/** Where this machine keeps its interpreters, and whether uv may bring one. */
export const PYTHON = [
  ...['PILOT_PYTHON', 'PILOT_PYTHON_DOWNLOADS', 'PYENV_ROOT', 'UV_PYTHON_INSTALL_DIR'],
  ...['CONDA_PREFIX', 'CONDA_ROOT', 'RUNNER_TOOL_CACHE', 'AGENT_TOOLSDIRECTORY'],
]
