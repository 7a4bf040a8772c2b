@node "%~dp0bin\checkout.js" %*
